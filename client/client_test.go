package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestClaimAnswers(t *testing.T) {
	e, c := serve(t, client.Options{Token: "x"})
	ctx := context.Background()
	e.status, e.body = 201, `{"id":"A"}`
	claim, replayed, err := c.Claim(ctx, "noon", 3, "key")
	if err != nil || replayed || claim.ID != "A" || e.sent != `{"quantity":3}` || e.last.Header.Get("Idempotency-Key") != "key" {
		t.Errorf("%+v %v %v, sent %s", claim, replayed, err, e.sent)
	}
	e.status, e.header = 200, http.Header{"Idempotent-Replayed": {"true"}}
	if _, replayed, err = c.Claim(ctx, "noon", 0, ""); err != nil || !replayed || e.sent != `{}` {
		t.Errorf("%v %v, sent %s", replayed, err, e.sent)
	}
	if _, given := e.last.Header["Idempotency-Key"]; given {
		t.Error("an empty key was sent")
	}
}

func TestCalls(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"user-token POST /v1/campaigns/a/claims": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Claim(ctx, "a", 1, "k")
			return err
		},
		"user-token POST /v1/products/p/orders": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Order(ctx, "p", 2, "k")
			return err
		},
		" GET /v1/time": func(ctx context.Context, c *client.Client) error {
			_, err := c.Time(ctx)
			return err
		},
		" GET /readyz": func(ctx context.Context, c *client.Client) error {
			_, err := c.Health(ctx)
			return err
		},
	})
}

// TestWith: a client with another token, ticket or admission has parts of its own, and
// the first one stays as it is.
func TestWith(t *testing.T) {
	e, c := serve(t, client.Options{Token: "first"})
	other := c.WithToken("other").WithTicket("t").WithAdmission("a")
	for _, of := range []struct {
		c                        *client.Client
		token, ticket, admission string
	}{{other, "Bearer other", "t", "a"}, {c, "Bearer first", "", ""}} {
		if _, err := of.c.Orders.Mine(t.Context(), dibs.OrderQuery{}, dibs.Page{}); err != nil || e.last.Header.Get("Authorization") != of.token {
			t.Errorf("the part calls as %q: %v", e.last.Header.Get("Authorization"), err)
		}
		_, _, err := of.c.Claim(t.Context(), "noon", 1, "k")
		if h := e.last.Header; err != nil || h.Get("Authorization") != of.token || h.Get("Dibs-Ticket") != of.ticket || h.Get("Dibs-Admission") != of.admission {
			t.Errorf("the claim calls with %v: %v", h, err)
		}
	}
}

// A redirect is an error: whoever sends one does not get the API key, nor a claim that is
// sent again elsewhere.
func TestNoRedirects(t *testing.T) {
	for what, own := range map[string]*http.Client{"its own": nil, "a given one": {}} {
		elsewhere := &echo{status: 200, body: `{"id":"noon"}`}
		other := httptest.NewServer(elsewhere)
		t.Cleanup(other.Close)
		e, c := serve(t, client.Options{AdminKey: "secret-key", HTTPClient: own})
		for _, status := range []int{301, 302, 303, 307, 308} {
			e.status, e.header = status, http.Header{"Location": {other.URL + "/v1/products/p"}}
			_, err := c.Products.Get(t.Context(), "p")
			var ce *client.Error
			if !errors.As(err, &ce) || ce.Status != status || !strings.Contains(ce.Detail, "redirects are not followed") {
				t.Errorf("%s, %d: %v", what, status, err)
			}
		}
		if elsewhere.last != nil {
			t.Errorf("%s followed a redirect, with the credentials %q", what, elsewhere.last.Header.Get("Authorization"))
		}
		if own != nil && own.CheckRedirect != nil {
			t.Error("the caller's client was changed")
		}
	}
}
