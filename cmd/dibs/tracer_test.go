package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// span is a span as OTLP writes it in JSON.
type span struct {
	TraceID  string `json:"traceId"`
	SpanID   string `json:"spanId"`
	ParentID string `json:"parentSpanId"`
	Name     string `json:"name"`
}

// collector takes traces as an OpenTelemetry collector does.
type collector struct {
	mu    sync.Mutex
	spans []span
	body  string
	more  chan struct{}
}

// ServeHTTP takes spans.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var got struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []span `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "collector-secret" || json.Unmarshal(raw, &got) != nil {
		http.Error(w, "not what a collector takes", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.body += string(raw)
	for _, r := range got.ResourceSpans {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	close(c.more)
	c.more = make(chan struct{})
	w.Header().Set("Content-Type", "application/json")
	// The sender may have gone; the spans are kept in any case.
	_, _ = w.Write([]byte("{}"))
}

// await waits for a span, below a parent if one is given.
func (c *collector) await(t *testing.T, name, trace, parent string) span {
	t.Helper()
	deadline := time.After(clitest.Patience)
	for {
		c.mu.Lock()
		spans, more := c.spans, c.more
		c.mu.Unlock()
		for _, s := range spans {
			if s.Name == name && (trace == "" || strings.EqualFold(s.TraceID, trace)) && (parent == "" || strings.EqualFold(s.ParentID, parent)) {
				return s
			}
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("no span %q of trace %q below %q among %+v", name, trace, parent, spans)
		}
	}
}

// awaitAll waits for so many spans of a name.
func (c *collector) awaitAll(t *testing.T, name string, n int) (all []span) {
	t.Helper()
	deadline := time.After(clitest.Patience)
	for {
		c.mu.Lock()
		spans, more := c.spans, c.more
		c.mu.Unlock()
		all = nil
		for _, s := range spans {
			if s.Name == name {
				all = append(all, s)
			}
		}
		if len(all) == n {
			return all
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%d spans %q, want %d", len(all), name, n)
		}
	}
}

// TestTraces runs a server with a collector: administrators' calls go on with the
// trace that they come with, and settling and claims have theirs.
func TestTraces(t *testing.T) {
	c := &collector{more: make(chan struct{})}
	at := httptest.NewServer(c)
	defer at.Close()
	env := append([]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + at.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=collector-secret", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
		"OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_SERVICE_NAME=till-7",
	}, clitest.Secrets...)
	p := start(t, env, "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--trace-claims")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	token := execute(t, clitest.Secrets[:1], "token", "--user", "42")
	token.Want(t, 0)

	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	now := time.Now().UTC()
	spec := fmt.Sprintf(`{"id":"c","kind":"sale","title":"t","starts_at":%q,"ends_at":%q,"stock":{"units":9}}`,
		now.Add(-time.Minute).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	for _, call := range []struct{ path, body, bearer string }{
		{"/v1/campaigns", spec, clitest.Key},
		{"/v1/campaigns/c/publish", "", clitest.Key},
		{"/v1/campaigns/c/claims", "", strings.TrimSpace(token.Out)},
	} {
		req, err := http.NewRequest(http.MethodPost, url+call.path, strings.NewReader(call.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+call.bearer)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode >= 300 {
			t.Fatalf("%s: status %d", call.path, resp.StatusCode)
		}
	}
	publish := c.await(t, "publish-campaign", trace, parent)
	c.await(t, "engine open", trace, publish.SpanID)
	c.await(t, "ledger load shard", trace, publish.SpanID)
	create := c.await(t, "create-campaign", trace, parent)
	c.await(t, "ledger insert campaign", trace, create.SpanID)
	settle := c.await(t, "settle", "", "")
	c.await(t, "ledger settle", settle.TraceID, settle.SpanID)
	tapped(t, url)
	claims := c.awaitAll(t, "claim", 2)
	for _, claim := range claims {
		if strings.EqualFold(claim.TraceID, trace) || claim.ParentID != "" {
			t.Error("a user's claim went on with the trace that it named")
		}
		c.await(t, "engine claim", claim.TraceID, claim.SpanID)
	}
	if claims[0].TraceID == claims[1].TraceID {
		t.Error("two claims are one trace")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.Contains(c.body, "till-7") {
		t.Error("OTEL_SERVICE_NAME is not told")
	}
	for _, secret := range []string{clitest.Key, clitest.Secret, strings.TrimSpace(token.Out)} {
		if strings.Contains(c.body, secret) {
			t.Errorf("a trace tells a secret: %s", secret)
		}
	}
}

// tapped claims over a WebSocket.
func tapped(t *testing.T, url string) {
	t.Helper()
	token, err := httpapi.IssueToken([]byte(clitest.Secret), "43", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	user, err := client.New(url, client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(user.CloseIdle)
	conn, err := user.Connect(t.Context(), client.ConnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if _, _, err := conn.Claim(t.Context(), client.Tap{CampaignID: "c", Key: "tap-1"}); err != nil {
		t.Fatal(err)
	}
}
