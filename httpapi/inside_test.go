package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// Every route that answers is documented, and nothing else is.
func TestEveryHandlerIsDocumented(t *testing.T) {
	cfg := Config{Services: ServicesOf(nil), AllowDevTokens: true}.WithDefaults()
	a, err := newAPI(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, raw, err := a.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	documented := []string{"/"} // What matches nothing else.
	for path, item := range doc.Paths {
		for method := range item {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	served := slices.Clone(a.patterns)
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented %q\nserved     %q", documented, served)
	}
}

// The claim's own encoder and encoding/json say the same.
func TestClaimEncoder(t *testing.T) {
	at := time.Date(2026, 12, 1, 4, 0, 0, 123e6, time.FixedZone("", 3600))
	for _, c := range []dibs.Claim{
		{},
		{
			ID: "7K3M9QX2B4TD6RWA", CampaignID: "noon", Kind: dibs.Sale, UserID: "42", Quantity: 3, Status: dibs.Pending,
			OrderType: dibs.FlashOrder, Amount: &dibs.Money{Amount: 99900, Currency: "CNY"}, PayBy: at, CreatedAt: at,
		},
		{Kind: dibs.Coupon, Status: dibs.Released, Items: []string{`A"1`, "中\n文", "<&>"}, Quantity: 1 << 40, CreatedAt: at},
	} {
		var got, want dibs.ClaimView
		if err := json.Unmarshal(appendClaim(nil, &c), &got); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(c.View())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		// Times are compared as instants, the rest as it is.
		if !got.CreatedAt.Equal(want.CreatedAt) || (got.PayBy == nil) != (want.PayBy == nil) || got.PayBy != nil && !got.PayBy.Equal(*want.PayBy) {
			t.Errorf("times differ: %+v, want %+v", got, want)
		}
		got.CreatedAt, got.PayBy, want.CreatedAt, want.PayBy = time.Time{}, nil, time.Time{}, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if s := string(appendClaim(nil, &c)); c.CreatedAt.Equal(at) && !strings.Contains(s, `"created_at":"2026-12-01T03:00:00.123Z"`) {
			t.Errorf("not in UTC: %s", s)
		}
	}
}

// The bounds of a connection are set: a server without them can be held open.
func TestServerHasBounds(t *testing.T) {
	s := NewServer("127.0.0.1:0", http.NotFoundHandler())
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("%+v", s)
	}
}

// slowChecks counts the signatures that are checked.
type slowChecks struct{ n int }

func (c *slowChecks) Verify(token string) (string, time.Time, error) {
	c.n++
	return "u" + token[len(token)-1:], time.Now().Add(time.Hour), nil
}

// However many requests carry a token, its signature is checked once.
func TestSignaturesAreCheckedOnce(t *testing.T) {
	checks := &slowChecks{}
	u, err := newUserTokens(checks, false, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	const tokens = 8
	for i := range 1000 * tokens {
		token := "eyJ.eyJ." + string(rune('0'+i%tokens))
		if v, ok := u.verify(token); !ok || v.user != "u"+token[len(token)-1:] {
			t.Fatalf("%s: %+v, %v", token, v, ok)
		}
	}
	if checks.n != tokens {
		t.Errorf("%d signatures were checked for %d tokens", checks.n, tokens)
	}
}
