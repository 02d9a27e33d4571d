package consumer_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/events/sinks"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// TestSignature: the example that the libraries of Standard Webhooks test with.
func TestSignature(t *testing.T) {
	got, err := sinks.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), secret)
	if err != nil || got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("the signature is %s, %v", got, err)
	}
}

func TestVerify(t *testing.T) {
	now := time.Unix(1614265330, 0)
	body := `{"specversion":"1.0","id":"c.1","type":"x","subject":"c","time":"2026-12-01T04:00:00Z","data":{}}`
	request := func(change func(h http.Header), body string, secrets ...string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		signature, err := sinks.Sign("c.1", now, []byte(`{"specversion":"1.0","id":"c.1","type":"x","subject":"c","time":"2026-12-01T04:00:00Z","data":{}}`), secrets...)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Webhook-Id", "c.1")
		r.Header.Set("Webhook-Timestamp", "1614265330")
		r.Header.Set("Webhook-Signature", signature)
		if change != nil {
			change(r.Header)
		}
		return r
	}
	const other = "whsec_b3RoZXI="
	for what, r := range map[string]*http.Request{"one secret": request(nil, body, secret), "two secrets": request(nil, body, other, secret)} {
		if e, err := consumer.Verify(r, now, secret); err != nil || e.ID != "c.1" {
			t.Errorf("%s: %v, %v", what, e, err)
		}
	}
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	for what, r := range map[string]*http.Request{
		"another secret":   request(nil, body, other),
		"another body":     request(nil, body+" ", secret),
		"another id":       request(set("Webhook-Id", "c.2"), body, secret),
		"another time":     request(set("Webhook-Timestamp", "1614265331"), body, secret),
		"no time":          request(set("Webhook-Timestamp", ""), body, secret),
		"no signature":     request(set("Webhook-Signature", ""), body, secret),
		"another version":  request(set("Webhook-Signature", "v2,AAAA"), body, secret),
		"no base 64":       request(set("Webhook-Signature", "v1,???"), body, secret),
		"a body too large": request(nil, strings.Repeat(" ", 1<<20)+body, secret),
	} {
		if _, err := consumer.Verify(r, now, secret); !errors.Is(err, consumer.ErrSignature) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, late := range []time.Duration{6 * time.Minute, -6 * time.Minute} {
		if _, err := consumer.Verify(request(nil, body, secret), now.Add(late), secret); !errors.Is(err, consumer.ErrSignature) {
			t.Errorf("%s later: %v", late, err)
		}
	}
	if _, err := consumer.Verify(request(nil, body, secret), now); !errors.Is(err, consumer.ErrSignature) {
		t.Errorf("without a secret: %v", err)
	}
}

func TestSeen(t *testing.T) {
	s := consumer.NewSeen(2)
	for i, step := range []struct {
		id   string
		want bool
	}{{"a", false}, {"a", true}, {"b", false}, {"a", true}, {"c", false}, {"b", true}, {"a", false}} {
		if got := s.Before(step.id); got != step.want {
			t.Errorf("step %d: %s was there before: %v", i, step.id, got)
		}
	}
	s.Forget("a")
	if s.Before("a") {
		t.Error("a was forgotten, and is there")
	}
}
