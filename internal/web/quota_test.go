package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

func TestSetQuota(t *testing.T) {
	h := http.Header{}
	SetQuota(h, &dibs.Quota{})
	if len(h) != 0 {
		t.Errorf("without a limit: %v", h)
	}
	SetQuota(h, &dibs.Quota{Name: "user", Limit: 5, Window: time.Minute, Remaining: 2, Reset: 1200 * time.Millisecond})
	if got := h.Get("RateLimit-Policy"); got != `"user";q=5;w=60` {
		t.Errorf("the policy is %s", got)
	}
	// A caller that waits for 2 seconds has waited 1.2.
	if got := h.Get("RateLimit"); got != `"user";r=2;t=2` {
		t.Errorf("the limit is %s", got)
	}
	h.Add("RateLimit-Policy", "another")
	if got := h.Get("RateLimit"); got != `"user";r=2;t=2` {
		t.Errorf("one header wrote over the other: %s", got)
	}
}
