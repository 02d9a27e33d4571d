package sinks_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events/sinks"

	"github.com/dibs-dev/dibs/webhooks"
)

// receiver is an endpoint that answers as it is told.
type receiver struct {
	*httptest.Server
	mu sync.Mutex
	// secret checks signatures, behave answers; nil for 204.
	secret string
	behave func(w http.ResponseWriter, n int)
	got    []string
	bodies map[string]string
	faults []string
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{bodies: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
		for _, f := range r.faults {
			t.Error(f)
		}
	})
	return r
}

// signed computes the signature by the standard's own words.
func signed(secret, id, at string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err.Error()
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "." + string(body)))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	id, at := req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp")
	if before, again := r.bodies[id]; err != nil || again && before != string(body) {
		r.faults = append(r.faults, fmt.Sprintf("%s came as %q and %q, %v", id, before, body, err))
	}
	r.bodies[id] = string(body)
	if r.secret != "" && !strings.Contains(req.Header.Get("webhook-signature"), signed(r.secret, id, at, body)) {
		r.faults = append(r.faults, fmt.Sprintf("%s is signed with %q", id, req.Header.Get("webhook-signature")))
	}
	r.got = append(r.got, id)
	if r.behave != nil {
		r.behave(w, len(r.got))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) times(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, one := range r.got {
		if one == id {
			n++
		}
	}
	return n
}

// hooked is a node whose webhooks hurry, and are tried so many times.
func hooked(t testing.TB, private bool, tries int) *shop {
	t.Helper()
	schedule := make([]time.Duration, tries-1)
	for i := range schedule {
		schedule[i] = time.Duration(min(i+1, 20)) * time.Millisecond
	}
	node, err := openNode(t.Context(), folder(t), sinks.Config{
		Poll:     2 * time.Millisecond,
		Webhooks: sinks.WebhookConfig{AllowPrivate: private, Timeout: 5 * time.Second, Schedule: schedule},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, node: node}
	t.Cleanup(s.close)
	return s
}

func (s *shop) endpoint(spec webhooks.EndpointSpec) webhooks.EndpointView {
	s.t.Helper()
	v, err := s.node.Service.Webhooks.Create(s.t.Context(), spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// deliveries counts an endpoint's deliveries of a status.
func (s *shop) deliveries(id string, status webhooks.DeliveryStatus) (list []webhooks.WebhookDelivery) {
	s.t.Helper()
	for page := (dibs.Page{Limit: dibs.MaxPage}); ; {
		l, err := s.node.Service.Webhooks.Deliveries(s.t.Context(), id, status, page)
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, l.Items...)
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			return list
		}
	}
}
