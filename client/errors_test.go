package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

func TestErrors(t *testing.T) {
	e, c := serve(t, client.Options{})
	ctx := context.Background()
	e.header = http.Header{"Retry-After": {"3"}}
	e.status, e.body = 503, `{"reason":"unavailable","detail":"not now","effect":"unknown","request_id":"r"}`
	_, _, err := c.Claim(ctx, "noon", 1, "k")
	var ce *client.Error
	if !errors.As(err, &ce) || ce.Effect != dibs.EffectUnknown || ce.RetryAfter != 3*time.Second || ce.Status != 503 || ce.RequestID != "r" {
		t.Errorf("%+v", err)
	}
	if !errors.Is(err, dibs.ErrUnavailable) || errors.Is(err, dibs.ErrNotFound) || !strings.Contains(err.Error(), "unavailable: not now") {
		t.Errorf("%v", err)
	}
	e.status, e.body = 502, `<html>bad gateway</html>`
	if _, err = c.Campaigns.Get(ctx, "noon"); !errors.As(err, &ce) || ce.Status != 502 || ce.Reason != "" || errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("%+v", err)
	}
	if err = c.Campaigns.ClaimsCSV(ctx, "noon", client.ClaimFilter{}, io.Discard); !errors.As(err, &ce) || ce.Status != 502 {
		t.Errorf("%+v", err)
	}
	e.status, e.body = 200, `{"id":`
	if _, err = c.Campaigns.Get(ctx, "noon"); err == nil || errors.As(err, &ce) {
		t.Errorf("half an answer: %v", err)
	}
	e.status, e.body = 503, `{"ready":false}`
	if h, err := c.Health(ctx); err != nil || h.Ready {
		t.Errorf("%+v %v", h, err)
	}
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://x", "http://user:pass@x", "http://", "://"} {
		if _, err := client.New(bad, client.Options{}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
