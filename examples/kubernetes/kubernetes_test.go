// Package kubernetes_test checks the manifests beside it against the types of
// Kubernetes' own API.
package kubernetes_test

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// documents returns the file's documents by kind. Each must decode into the type
// of its kind without a field that the type does not have, as the API server
// demands of what is applied with strict validation.
func documents(t *testing.T) map[string][]any {
	t.Helper()
	text, err := os.ReadFile("dibs.yaml")
	must(t, err)
	types := map[string]any{
		"v1/ConfigMap": core.ConfigMap{}, "v1/Service": core.Service{}, "apps/v1/Deployment": apps.Deployment{},
		"policy/v1/PodDisruptionBudget": policy.PodDisruptionBudget{}, "networking.k8s.io/v1/NetworkPolicy": networking.NetworkPolicy{},
	}
	out := map[string][]any{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		must(t, yaml.Unmarshal(document, &head))
		kind, known := types[head.APIVersion+"/"+head.Kind]
		if !known {
			t.Fatalf("%s/%s is not looked at", head.APIVersion, head.Kind)
		}
		object := reflect.New(reflect.TypeOf(kind)).Interface()
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Fatalf("%s: %v", head.Kind, err)
		}
		out[head.Kind] = append(out[head.Kind], object)
	}
	return out
}

// TestManifests: the manifests fit the API, and what names something in them
// names something that is there.
func TestManifests(t *testing.T) {
	all := documents(t)
	settings := all["ConfigMap"][0].(*core.ConfigMap)
	reference, err := os.ReadFile("../../docs/CONFIG.md")
	must(t, err)
	known := regexp.MustCompile(`DIBS_[A-Z_]+`).FindAllString(string(reference), -1)
	for name := range settings.Data {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no setting", name)
		}
	}
	deployment := all["Deployment"][0].(*apps.Deployment)
	labels := deployment.Spec.Template.Labels
	if !reflect.DeepEqual(deployment.Spec.Selector.MatchLabels, labels) {
		t.Errorf("the deployment selects %v, its pods have %v", deployment.Spec.Selector, labels)
	}
	node := deployment.Spec.Template.Spec.Containers[0]
	ports := map[string]bool{}
	for _, p := range node.Ports {
		ports[p.Name] = true
	}
	services := all["Service"]
	if len(services) != 2 {
		t.Errorf("%d services", len(services))
	}
	for _, s := range services {
		service := s.(*core.Service)
		if !reflect.DeepEqual(service.Spec.Selector, labels) || !ports[service.Spec.Ports[0].TargetPort.String()] {
			t.Errorf("the service %s leads to %v, port %s", service.Name, service.Spec.Selector, service.Spec.Ports[0].TargetPort.String())
		}
	}
	for _, rule := range all["NetworkPolicy"][0].(*networking.NetworkPolicy).Spec.Ingress {
		if !ports[rule.Ports[0].Port.String()] {
			t.Errorf("the policy names the port %s", rule.Ports[0].Port)
		}
	}
	budget := all["PodDisruptionBudget"][0].(*policy.PodDisruptionBudget)
	if !reflect.DeepEqual(budget.Spec.Selector.MatchLabels, labels) {
		t.Errorf("the budget is for %v", budget.Spec.Selector)
	}
	if node.EnvFrom[0].ConfigMapRef.Name != settings.Name {
		t.Errorf("the settings are %s, the node reads %s", settings.Name, node.EnvFrom[0].ConfigMapRef.Name)
	}
	// A node is killed only after it had the time to pause and to drain.
	if wait := *deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; wait <= node.Lifecycle.PreStop.Sleep.Seconds+10 {
		t.Errorf("a node has %d s to end", wait)
	}
}
