package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// sameAnswer answers every claim alike.
type sameAnswer struct{ res dibs.Result }

func (s *sameAnswer) Claim(context.Context, dibs.ClaimRequest) (dibs.Result, error) {
	return s.res, nil
}

// noWriter is a ResponseWriter that costs nothing.
type noWriter struct {
	header http.Header
	status int
}

func (w *noWriter) Header() http.Header         { return w.header }
func (w *noWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *noWriter) WriteHeader(status int)      { w.status = status }

// claimCosts are the answers to claims, with how often one may allocate memory. Of
// these, the mux takes two.
var claimCosts = []struct {
	name   string
	res    dibs.Result
	status int
	allocs float64
}{
	{"granted", dibs.Result{Outcome: dibs.Granted, Claim: costlyClaim}, http.StatusCreated, 6},
	{"replayed", dibs.Result{Outcome: dibs.Granted, Replayed: true, Claim: costlyClaim}, http.StatusOK, 4},
	{"sold out", dibs.Result{Outcome: dibs.SoldOut, Campaign: &dibs.Campaign{}}, http.StatusConflict, 4},
}

var costlyClaim = &dibs.Claim{
	ID: "7K3M9QX2B4TD6RWA", CampaignID: "noon", Kind: dibs.Sale, UserID: "42", Quantity: 1, Status: dibs.Pending,
	Amount: &dibs.Money{Amount: 99900, Currency: "CNY"}, PayBy: time.Unix(1e9, 0), CreatedAt: time.Unix(1e9, 0),
}

// claimOnce returns a function that makes one claim, and the writer of its answer.
func claimOnce(t testing.TB, res dibs.Result) (func(), *noWriter) {
	t.Helper()
	services := ServicesOf(&node.Service{Live: &live.Node{}})
	services.Claimer = &sameAnswer{res: res}
	h, err := New(Config{Services: services, JWTSecret: []byte("a secret of the tests, 32 bytes+")})
	if err != nil {
		t.Fatal(err)
	}
	token, err := IssueToken([]byte("a secret of the tests, 32 bytes+"), "42", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w := &noWriter{header: http.Header{}}
	r := &http.Request{
		Method: "POST", URL: &url.URL{Path: "/v1/campaigns/noon/claims"}, RemoteAddr: "192.0.2.1:5000", Body: http.NoBody,
		Header: http.Header{"Authorization": {"Bearer " + token}, "Idempotency-Key": {"press-1"}, "Accept-Language": {"zh-CN"}},
	}
	return func() { clear(w.header); h.ServeHTTP(w, r) }, w
}

func BenchmarkClaim(b *testing.B) {
	for _, c := range claimCosts {
		b.Run(c.name, func(b *testing.B) {
			claim, _ := claimOnce(b, c.res)
			b.ReportAllocs()
			for b.Loop() {
				claim()
			}
		})
	}
}

// TestClaimAllocations bounds the memory that the answer to a claim allocates.
func TestClaimAllocations(t *testing.T) {
	for _, c := range claimCosts {
		claim, w := claimOnce(t, c.res)
		n := testing.AllocsPerRun(1000, claim)
		if w.status != c.status || n > c.allocs {
			t.Errorf("%s: status %d, %v allocations, want %d and at most %v", c.name, w.status, n, c.status, c.allocs)
		}
	}
}
