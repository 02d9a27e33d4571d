package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// scraped is what a node's /metrics has of one metric.
type scraped struct {
	kind string
	// values are the values of each label.
	values map[string]map[string]bool
}

// labels are the names of the labels, in order.
func (s *scraped) labels() []string { return slices.Sorted(maps.Keys(s.values)) }

// scrape reads /metrics as Prometheus does; without those of others.
func scrape(t *testing.T, url string) map[string]*scraped {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*scraped{}
	for name, f := range families {
		if !strings.HasPrefix(name, "dibs_") {
			continue
		}
		s := &scraped{kind: strings.ToLower(f.GetType().String()), values: map[string]map[string]bool{}}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if s.values[l.GetName()] == nil {
					s.values[l.GetName()] = map[string]bool{}
				}
				s.values[l.GetName()][l.GetValue()] = true
			}
		}
		all[name] = s
	}
	return all
}

// ask sends a request with a token and returns the status.
func ask(t *testing.T, method, address, token, body string) int {
	t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// busyNode is a server on which something happened.
func busyNode(t *testing.T) string {
	t.Helper()
	_, url := startServe(t, t.TempDir(), "--webhook-allow-private")
	token := execute(t, clitest.Secrets[:1], "token", "--user", "42")
	token.Want(t, 0)
	user := strings.TrimSpace(token.Out)
	now := time.Now().UTC()
	for _, c := range []struct{ id, more string }{{"plain", ""}, {"queued", `,"gate":{"room":{"mode":"fifo","rate":1}}`}} {
		spec := fmt.Sprintf(`{"id":%q,"kind":"sale","title":"t","starts_at":%q,"ends_at":%q,"stock":{"units":1}%s}`,
			c.id, now.Add(-time.Minute).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339), c.more)
		if status := ask(t, http.MethodPost, url+"/v1/campaigns", clitest.Key, spec); status != http.StatusCreated {
			t.Fatalf("campaign %s: status %d", c.id, status)
		}
		if status := ask(t, http.MethodPost, url+"/v1/campaigns/"+c.id+"/publish", clitest.Key, ""); status != http.StatusOK {
			t.Fatalf("publishing %s: status %d", c.id, status)
		}
	}
	if status := ask(t, http.MethodPost, url+"/v1/webhook-endpoints", clitest.Key, `{"url":"http://127.0.0.1:9/"}`); status != http.StatusCreated {
		t.Fatalf("adding a webhook: status %d", status)
	}
	for i, want := range []int{http.StatusCreated, http.StatusConflict} {
		if status := ask(t, http.MethodPost, url+"/v1/campaigns/plain/claims", user, ""); status != want {
			t.Fatalf("claim %d: status %d, want %d", i, status, want)
		}
	}
	if status := ask(t, http.MethodPost, url+"/v1/campaigns/queued/queue", user, ""); status >= 300 {
		t.Fatalf("joining the room: status %d", status)
	}
	return url
}

// busyMetrics are a node's metrics when there is something in each of them.
func busyMetrics(t *testing.T, url string) map[string]*scraped {
	t.Helper()
	ctx, tick := t.Context(), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(clitest.Patience); ; {
		all := scrape(t, url)
		// The takers of events are looked at by and by.
		if all["dibs_events_behind_rows"] != nil && all["dibs_http_requests_total"] != nil && all["dibs_room_waiting"] != nil {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("no metrics of events and rooms after %s", clitest.Patience)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMetrics holds the documents and the monitoring example against what a
// node shows: a metric without documentation, or an expression without a metric, is a
// fault.
func TestMetrics(t *testing.T) {
	url := busyNode(t)
	all := busyMetrics(t, url)
	t.Run("promtool", func(t *testing.T) { metricsAreWellFormed(t, url) })
	t.Run("documented", func(t *testing.T) { metricsAreDocumented(t, all) })
	t.Run("dashboard", func(t *testing.T) { dashboardLooksAtMetrics(t, all) })
	t.Run("alerts", func(t *testing.T) { alertsLookAtMetrics(t, all) })
}

// metricsAreWellFormed looks at names, units, types and help texts as promtool check
// metrics does: this is its own code.
func metricsAreWellFormed(t *testing.T, url string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	problems, err := promlint.New(resp.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

var metricRow = regexp.MustCompile("(?m)^\\| `(dibs_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\|")

// metricsAreDocumented compares the table of docs/OPERATIONS.md both ways.
func metricsAreDocumented(t *testing.T, all map[string]*scraped) {
	var want, have []string
	for name, s := range all {
		want = append(want, name+" "+s.kind+" "+strings.Join(s.labels(), ","))
	}
	for _, row := range metricRow.FindAllStringSubmatch(readFile(t, "../../docs/OPERATIONS.md"), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return r == '`' || r == ',' || r == ' ' || r == '–' })
		slices.Sort(labels)
		have = append(have, row[1]+" "+row[2]+" "+strings.Join(labels, ","))
	}
	for _, w := range want {
		if !slices.Contains(have, w) {
			t.Errorf("/metrics has %q (name, type, labels), and no row of docs/OPERATIONS.md says so", w)
		}
	}
	for _, h := range have {
		if !slices.Contains(want, h) {
			t.Errorf("docs/OPERATIONS.md has %q (name, type, labels), and /metrics does not", h)
		}
	}
	if len(have) != len(slices.Compact(slices.Sorted(slices.Values(have)))) {
		t.Error("docs/OPERATIONS.md has a metric twice")
	}
}

var (
	metricName = regexp.MustCompile(`\bdibs_[a-z_]+\b`)
	selector   = regexp.MustCompile(`\b(dibs_[a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	// targetLabels are those that Prometheus itself adds.
	targetLabels = []string{"job", "instance"}
)

// familyOf is the metric that a name in an expression is of.
func familyOf(all map[string]*scraped, name string) *scraped {
	if s := all[name]; s != nil && s.kind != "histogram" {
		return s
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && all[base] != nil && all[base].kind == "histogram" {
			return all[base]
		}
	}
	return nil
}

// checkExpression checks every metric, label and literal value that an
// expression of PromQL names. It returns how many metrics it found.
func checkExpression(all map[string]*scraped, expr string, fail func(string, ...any)) int {
	labels := map[string]bool{"le": true}
	for _, l := range targetLabels {
		labels[l] = true
	}
	names := metricName.FindAllString(expr, -1)
	for _, name := range names {
		s := familyOf(all, name)
		if s == nil {
			fail("there is no metric %s: %s", name, expr)
			continue
		}
		for l := range s.values {
			labels[l] = true
		}
	}
	for _, sel := range selector.FindAllStringSubmatch(expr, -1) {
		s := familyOf(all, sel[1])
		for _, m := range matcher.FindAllStringSubmatch(sel[2], -1) {
			switch {
			case s == nil || slices.Contains(targetLabels, m[1]):
			case s.values[m[1]] == nil:
				fail("%s has no label %s: %s", sel[1], m[1], expr)
			case m[2] == "=" && !strings.HasPrefix(m[3], "$") && !s.values[m[1]][m[3]]:
				fail("%s has no %s %q: %s", sel[1], m[1], m[3], expr)
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			if l = strings.TrimSpace(l); l != "" && !labels[l] {
				fail("nothing in it has the label %s: %s", l, expr)
			}
		}
	}
	return len(names)
}

// dashboardLooksAtMetrics checks every expression of the dashboard.
func dashboardLooksAtMetrics(t *testing.T, all map[string]*scraped) {
	var dashboard struct {
		UID    string `json:"uid"`
		Panels []struct {
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
		Templating struct {
			List []struct {
				Name  string `json:"name"`
				Query any    `json:"query"`
			} `json:"list"`
		} `json:"templating"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "../../examples/monitoring/grafana/dashboards/dibs.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || len(dashboard.Panels) == 0 {
		t.Fatal("there is no dashboard in it")
	}
	text := readFile(t, "../../examples/monitoring/grafana/dashboards/dibs.json")
	for _, v := range dashboard.Templating.List {
		if !strings.Contains(text, "$"+v.Name) && !strings.Contains(text, "${"+v.Name+"}") {
			t.Errorf("nothing uses the variable %s", v.Name)
		}
		if q, ok := v.Query.(string); ok && metricName.MatchString(q) {
			checkExpression(all, q, t.Errorf)
		}
	}
	for _, p := range dashboard.Panels {
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			if checkExpression(all, target.Expr, t.Errorf) == 0 {
				t.Errorf("%s: %q looks at no metric of dibs", p.Title, target.Expr)
			}
		}
	}
}

// alertFile is a file of Prometheus' rules.
type alertFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

var labelUsed = regexp.MustCompile(`\$labels\.([a-z_]+)`)

// alertsLookAtMetrics checks every alert, and that it says what to do.
func alertsLookAtMetrics(t *testing.T, all map[string]*scraped) {
	var f alertFile
	d := yaml.NewDecoder(strings.NewReader(readFile(t, "../../examples/monitoring/alerts.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range f.Groups {
		for _, a := range g.Rules {
			if seen[a.Alert] {
				t.Errorf("%s is there twice", a.Alert)
			}
			seen[a.Alert] = true
			fail := func(format string, args ...any) { t.Errorf(a.Alert+": "+format, args...) }
			if checkExpression(all, a.Expr, fail) == 0 && !strings.HasPrefix(a.Expr, "up{") {
				fail("it looks at no metric of dibs: %s", a.Expr)
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
				fail("its severity is %q", a.Labels["severity"])
			}
			if a.Annotations["summary"] == "" || len(a.Annotations["remedy"]) < 40 {
				fail("it does not say what it saw and what to do")
			}
			for _, l := range labelUsed.FindAllStringSubmatch(a.Annotations["summary"], -1) {
				if !alertHas(all, a.Expr, l[1]) {
					fail("it has no label %s to tell", l[1])
				}
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d alerts", len(seen))
	}
}

// alertHas reports whether an alert has a label: what it groups by, or else what
// its metrics and their targets have.
func alertHas(all map[string]*scraped, expr, label string) bool {
	if groups := grouping.FindAllStringSubmatch(expr, -1); len(groups) > 0 {
		return slices.ContainsFunc(groups, func(g []string) bool { return regexp.MustCompile(`\b` + label + `\b`).MatchString(g[1]) })
	}
	if strings.Contains(expr, "max(") || strings.Contains(expr, "sum(") || strings.Contains(expr, "count(") {
		return false
	}
	return slices.Contains(targetLabels, label) || slices.ContainsFunc(metricName.FindAllString(expr, -1), func(name string) bool {
		s := familyOf(all, name)
		return s != nil && s.values[label] != nil
	})
}
