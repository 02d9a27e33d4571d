package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// replied sends a request with a token and returns the answer's fields.
func replied(t *testing.T, method, address, token, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "request-of-the-test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatalf("%s %s: %v: %s", method, address, err, raw)
	}
	return fields
}

// text is a field that has to be there.
func text(t *testing.T, of map[string]any, field string) string {
	t.Helper()
	s, ok := of[field].(string)
	if !ok || s == "" {
		t.Fatalf("no %s in %v", field, of)
	}
	return s
}

// secretsUsed does what has to do with secrets and returns all of them.
func secretsUsed(t *testing.T, url, data string) []string {
	t.Helper()
	r := execute(t, clitest.Secrets[:1], "token", "--user", "42")
	r.Want(t, 0)
	user := strings.TrimSpace(r.Out)
	r = execute(t, nil, "key", "create", "--name", "till", "--data", data, "--output", "json")
	r.Want(t, 0)
	var key struct{ Secret string }
	if err := json.Unmarshal([]byte(r.Out), &key); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	spec := fmt.Sprintf(`{"id":"c","kind":"coupon","title":"t","starts_at":%q,"ends_at":%q,"stock":{"items":["COUPON-CODE-1","COUPON-CODE-2"]},`+
		`"gate":{"room":{"mode":"fifo","rate":100},"ticket":{"lifetime":"1m"}}}`, now.Add(-time.Minute).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	replied(t, http.MethodPost, url+"/v1/campaigns", key.Secret, spec)
	replied(t, http.MethodPost, url+"/v1/campaigns/c/publish", clitest.Key, "")
	hook := text(t, replied(t, http.MethodPost, url+"/v1/webhook-endpoints", clitest.Key, `{"url":"http://127.0.0.1:9/?token=in-the-address"}`), "secret")
	socket := text(t, replied(t, http.MethodPost, url+"/v1/ws-tickets", user, "{}"), "ticket")
	ticket := text(t, replied(t, http.MethodPost, url+"/v1/campaigns/c/tickets", user, "{}"), "ticket")
	admission := text(t, replied(t, http.MethodPost, url+"/v1/campaigns/c/queue", user, ""), "admission")
	req, err := http.NewRequest(http.MethodPost, url+"/v1/campaigns/c/claims", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + user, "Dibs-Ticket": ticket, "Dibs-Admission": admission, "Idempotency-Key": "key-of-a-claim"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("the claim: status %d, %v", resp.StatusCode, err)
	}
	for _, wrong := range []string{user[:len(user)-2] + "xx", clitest.Key + "-not-quite"} {
		replied(t, http.MethodGet, url+"/v1/me/claims", wrong, "")
		replied(t, http.MethodPost, url+"/v1/products", wrong, "{")
	}
	replied(t, http.MethodGet, url+"/v1/ws?ticket="+socket, user, "")
	return []string{
		// The wrong token has all but the end of the right one.
		clitest.Secret, clitest.Key, user[:len(user)-2], key.Secret, hook, socket, ticket, admission, "human-secret-0123456789-0123456789", "password-of-the-sink",
		"secret-of-the-collector", "in-the-address", "COUPON-CODE", "key-of-a-claim",
	}
}

// TestLogsTellNoSecrets reads all that a server wrote of a run in which every
// kind of secret was used, at the level that writes most.
func TestLogsTellNoSecrets(t *testing.T) {
	data := t.TempDir()
	env := append([]string{
		"DIBS_HUMAN_SECRET=human-secret-0123456789-0123456789", "DIBS_EVENTS=redis://sink:password-of-the-sink@127.0.0.1:9/0?stream=shop",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_HEADERS=api-key=secret-of-the-collector", "OTEL_BSP_SCHEDULE_DELAY=50",
	}, clitest.Secrets...)
	p := start(t, env, "serve", "--data", data, "--listen", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json", "--webhook-allow-private", "--trace-claims")
	url := p.await(t, p.err, `"msg":"serving","url":"([^"]+)"`)[1]
	used := secretsUsed(t, url, data)
	// The sink, the webhook and the collector cannot be reached, and that is said.
	p.await(t, p.err, `127\.0\.0\.1:9/0`)
	p.await(t, p.err, `a webhook cannot be reached[^\n]*127\.0\.0\.1:9`)
	p.await(t, p.err, `traces are not sent`)
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	lines, ours := 0, 0
	for line := range strings.Lines(p.err.String()) {
		lines++
		var fields struct {
			Time      time.Time `json:"time"`
			Level     string    `json:"level"`
			Msg       string    `json:"msg"`
			RequestID string    `json:"request_id"`
			Trace     string    `json:"trace_id"`
			Route     string    `json:"route"`
		}
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields.Time.IsZero() || fields.Level == "" || fields.Msg == "" {
			t.Errorf("no line for machines: %v: %s", err, line)
		}
		if fields.RequestID == "request-of-the-test" && (fields.Trace != "" || !strings.Contains(fields.Route, "campaigns/{id}/publish")) {
			ours++
		}
		for _, secret := range used {
			if strings.Contains(line, secret) {
				t.Errorf("a line tells %q: %s", secret, line)
			}
		}
	}
	if ours == 0 || p.out.String() != "" {
		t.Errorf("%d of %d lines have the id of a request; on the other output: %q", ours, lines, p.out)
	}
}
