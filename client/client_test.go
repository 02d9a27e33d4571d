package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each call with what a test says and keeps the last request.
type echo struct {
	status int
	header http.Header
	body   string

	last *http.Request
	sent string
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	e.last, e.sent = r, string(raw)
	for k, v := range e.header {
		w.Header()[k] = v
	}
	w.WriteHeader(e.status)
	if _, err := io.WriteString(w, e.body); err != nil {
		panic(err)
	}
}

func serve(t *testing.T, opts client.Options) (*echo, *client.Client) {
	t.Helper()
	e := &echo{status: 200, body: "{}"}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return e, c
}

// Each method calls the address of the API with the right token.
func TestCalls(t *testing.T) {
	e, c := serve(t, client.Options{Token: "user-token", AdminKey: "admin-key", Language: "zh-CN"})
	ctx := context.Background()
	page := dibs.Page{Limit: 5, Cursor: "x y"}
	for want, call := range map[string]func() error{
		"user-token POST /v1/campaigns/a/claims": func() error { _, _, err := c.Claim(ctx, "a", 1, "k"); return err },
		"user-token GET /v1/claims/X":            func() error { _, err := c.FindClaim(ctx, "X"); return err },
		"user-token GET /v1/me/claims?cursor=x+y&limit=5": func() error {
			_, err := c.MyClaims(ctx, page)
			return err
		},
		"admin-key GET /v1/campaigns/a%2Fb": func() error { _, err := c.Campaign(ctx, "a/b"); return err },
		"admin-key GET /v1/campaigns":       func() error { _, err := c.Campaigns(ctx, dibs.Page{}); return err },
		"admin-key GET /v1/claims?campaign_id=a&code=c&order_type=2&payment_ref=p&since=1970-01-01T00%3A00%3A01Z&status=pending&user_id=7": func() error {
			pending := dibs.Pending
			_, err := c.Orders(ctx, dibs.OrderQuery{
				UserID: "7", Status: &pending, CampaignID: "a", OrderType: dibs.FlashOrder, PaymentRef: "p", Code: "c", Since: time.Unix(1, 0),
			}, dibs.Page{})
			return err
		},
		"admin-key GET /v1/claims?format=csv&product_id=p": func() error { return c.OrdersCSV(ctx, dibs.OrderQuery{ProductID: "p"}, io.Discard) },
		"user-token GET /v1/me/claims?campaign_id=a": func() error {
			_, err := c.MyOrders(ctx, dibs.OrderQuery{CampaignID: "a", UserID: "8"}, dibs.Page{})
			return err
		},
		"user-token POST /v1/products/p/orders": func() error { _, _, err := c.Order(ctx, "p", 2, "k"); return err },
		"admin-key POST /v1/campaigns/a/codes": func() error {
			_, _, err := c.ImportCodes(ctx, "a", strings.NewReader("A1\n"), "", nil)
			return err
		},
		" GET /v1/time":                          func() error { _, err := c.Time(ctx); return err },
		"admin-key POST /v1/products":            func() error { _, err := c.CreateProduct(ctx, dibs.ProductSpec{}, ""); return err },
		"admin-key PATCH /v1/products/p":         func() error { _, err := c.PatchProduct(ctx, "p", dibs.ProductPatch{}); return err },
		"admin-key GET /v1/products/p":           func() error { _, err := c.Product(ctx, "p"); return err },
		"admin-key GET /v1/products":             func() error { _, err := c.Products(ctx, dibs.Page{}); return err },
		"admin-key POST /v1/campaigns":           func() error { _, err := c.CreateCampaign(ctx, dibs.CampaignSpec{}, ""); return err },
		"admin-key PATCH /v1/campaigns/a":        func() error { _, err := c.PatchCampaign(ctx, "a", dibs.CampaignPatch{}); return err },
		"admin-key POST /v1/campaigns/a/publish": func() error { _, err := c.Publish(ctx, "a"); return err },
		"admin-key POST /v1/campaigns/a/pause":   func() error { _, err := c.Pause(ctx, "a"); return err },
		"admin-key POST /v1/campaigns/a/resume":  func() error { _, err := c.Resume(ctx, "a"); return err },
		"admin-key POST /v1/campaigns/a/end":     func() error { _, err := c.End(ctx, "a"); return err },
		"admin-key POST /v1/campaigns/a/stock":   func() error { _, err := c.ChangeStock(ctx, "a", dibs.StockChange{}, ""); return err },
		"admin-key GET /v1/campaigns/a/stats":    func() error { _, err := c.Stats(ctx, "a"); return err },
		"admin-key GET /v1/campaigns/a/claims?status=pending&user_id=7": func() error {
			_, err := c.CampaignClaims(ctx, "a", client.ClaimFilter{UserID: "7", Status: "pending"}, dibs.Page{})
			return err
		},
		"admin-key GET /v1/campaigns/a/claims?format=csv": func() error {
			return c.CampaignClaimsCSV(ctx, "a", client.ClaimFilter{}, io.Discard)
		},
		"admin-key GET /v1/verify?campaign=a&campaign=b": func() error { _, err := c.Verify(ctx, "a", "b"); return err },
		"admin-key POST /v1/verify":                      func() error { _, err := c.Repair(ctx, audit.RepairRequest{Campaigns: []string{"a", "b"}}); return err },
		" GET /readyz":                                   func() error { _, err := c.Health(ctx); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		token := strings.TrimPrefix(e.last.Header.Get("Authorization"), "Bearer ")
		if got := token + " " + e.last.Method + " " + e.last.URL.RequestURI(); got != want {
			t.Errorf("called %q, want %q", got, want)
		}
		if e.last.Header.Get("Accept-Language") != "zh-CN" {
			t.Errorf("%s: no language", want)
		}
	}
	if _, err := c.WithToken("other").MyClaims(ctx, dibs.Page{}); err != nil || e.last.Header.Get("Authorization") != "Bearer other" {
		t.Errorf("another user: %v", err)
	}
}

// Codes are asked for by pages, or all as a file.
func TestCodeCalls(t *testing.T) {
	e, c := serve(t, client.Options{AdminKey: "admin-key"})
	e.body = `{"items":[{"code":"A1"}],"next_cursor":"n"}`
	l, err := c.UnclaimedCodes(t.Context(), "a", dibs.Page{Limit: 5})
	if err != nil || len(l.Items) != 1 || l.Items[0].Code != "A1" || l.NextCursor != "n" || e.last.URL.RequestURI() != "/v1/campaigns/a/codes?limit=5" {
		t.Errorf("%+v, %v from %s", l, err, e.last.URL)
	}
	e.body = "code\nA1\n"
	var file strings.Builder
	err = c.UnclaimedCodesCSV(t.Context(), "a", &file)
	if err != nil || file.String() != e.body || e.last.URL.RequestURI() != "/v1/campaigns/a/codes?format=csv" || e.last.Header.Get("Authorization") != "Bearer admin-key" {
		t.Errorf("%q, %v from %s", file.String(), err, e.last.URL)
	}
}

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
	if _, err = c.Campaign(ctx, "noon"); !errors.As(err, &ce) || ce.Status != 502 || ce.Reason != "" || errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("%+v", err)
	}
	if err = c.CampaignClaimsCSV(ctx, "noon", client.ClaimFilter{}, io.Discard); !errors.As(err, &ce) || ce.Status != 502 {
		t.Errorf("%+v", err)
	}
	e.status, e.body = 200, `{"id":`
	if _, err = c.Campaign(ctx, "noon"); err == nil || errors.As(err, &ce) {
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
