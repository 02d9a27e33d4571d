package remote_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/webhooks"
)

// TestEndpoints manages a webhook that takes events.
func TestEndpoints(t *testing.T) {
	hook := &clitest.Webhook{}
	receiver := httptest.NewServer(hook)
	defer receiver.Close()
	defer receiver.CloseClientConnections()
	_, url := clitest.Serve(t, t.TempDir(), "--webhook-allow-private")
	env := []string{"DIBS_URL=" + url, "DIBS_ADMIN_KEY=" + clitest.Key}
	endpoint := func(args ...string) (e webhooks.EndpointView) {
		t.Helper()
		r := clitest.Run(t, env, append([]string{"events", "endpoints"}, append(args, "--output", "json")...)...)
		if err := json.Unmarshal([]byte(r.Out), &e); err != nil || r.Code != 0 {
			t.Fatalf("%v: %v\n%s%s", args, err, r.Out, r.Err)
		}
		return e
	}
	clitest.Run(t, env, "events", "endpoints", "create", "ftp://x").Want(t, 1, "invalid_request: URL must be an address")
	clitest.Run(t, env, "events", "endpoints", "create", receiver.URL, "--types", "campaign.published").Want(t, 1,
		`--types "campaign.published" is no type of event such as dev.dibs.claim.granted`)
	var e, next webhooks.EndpointView
	hook.SetSecret(func() string {
		e = endpoint("create", receiver.URL, "--types", "dev.dibs.campaign.published")
		return e.Secret
	})
	if !strings.HasPrefix(e.Secret, webhooks.SecretPrefix) {
		t.Errorf("the new endpoint is %+v", e)
	}
	clitest.Run(t, env, "events", "endpoints", "show", e.ID).Want(t, 0, "types     dev.dibs.campaign.published\n")
	clitest.Run(t, env, "campaign", "create", "--id", "noon", "--title", "Noon", "--units", "5", "--ends", "+1h").Want(t, 0)
	clitest.Run(t, env, "campaign", "publish", "noon").Want(t, 0)
	clitest.Run(t, env, "events", "endpoints", "test", e.ID).Want(t, 0, "test-")
	delivered := func(n int) {
		t.Helper()
		clitest.Until(t, "delivered", func() bool {
			return strings.Count(clitest.Run(t, env, "events", "deliveries", e.ID, "--status", "delivered").Out, " delivered ") == n
		})
	}
	delivered(2)
	clitest.Run(t, env, "events", "deliveries", e.ID, "--limit", "1").Want(t, 0, "dibs: there are more than these 1: --limit 100 shows as many as one call can")
	clitest.Run(t, env, "events", "deliveries", e.ID, "--limit", "0").Want(t, 2, "--limit must be at least 1")
	if r := clitest.Run(t, env, "events", "deliveries", e.ID, "--limit", "2"); r.Err != "" {
		t.Errorf("the whole list has a note: %s", r.Err)
	}
	clitest.Run(t, env, "events", "sinks").Want(t, 0, webhooks.WebhookSink, "true")
	clitest.Run(t, env, "events", "tail", "--after", "0", "--once").Want(t, 0, `"type":"dev.dibs.campaign.published"`, `"subject":"noon"`)
	clitest.Run(t, env, "events", "redeliver", e.ID).Want(t, 2, "name an EVENT, or give --failed")
	clitest.Run(t, env, "events", "redeliver", e.ID, "--failed").Want(t, 0, "redelivered", "0")
	clitest.Run(t, env, "events", "redeliver", e.ID, "none").Want(t, 1, "no such delivery")
	hook.SetSecret(func() string {
		next = endpoint("rotate-secret", e.ID, "--keep-old-for", "0s")
		return next.Secret
	})
	if next.Secret == e.Secret || next.OldSecretUntil != nil || !strings.HasPrefix(next.Secret, webhooks.SecretPrefix) {
		t.Errorf("after the rotation: %+v", next)
	}
	clitest.Run(t, env, "events", "endpoints", "test", e.ID).Want(t, 0)
	delivered(3)
	if e := endpoint("disable", e.ID); !e.Disabled || e.Secret != "" {
		t.Errorf("disabled: %+v", e)
	}
	clitest.Run(t, env, "events", "endpoints", "list").Want(t, 0, e.ID, "true: by an admin")
	clitest.Run(t, env, "events", "endpoints", "test", e.ID).Want(t, 1, "disabled")
	if e := endpoint("enable", e.ID); e.Disabled {
		t.Errorf("enabled: %+v", e)
	}
	clitest.Run(t, env, "events", "endpoints", "delete", e.ID).Want(t, 0)
	clitest.Run(t, env, "events", "endpoints", "show", e.ID).Want(t, 1, "There is no webhook endpoint")
	if bodies, faults := hook.Took(); len(bodies) != 3 || len(faults) > 0 {
		t.Errorf("the receiver got %d events, %v", len(bodies), faults)
	}
}
