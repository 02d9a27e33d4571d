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

func TestLanguage(t *testing.T) {
	l, err := newLanguages()
	if err != nil {
		t.Fatal(err)
	}
	for header, zh := range map[string]bool{
		"":                                  false,
		"zh":                                true,
		"zh-CN":                             true,
		"zh-TW,en;q=0.5":                    true,
		"zh-Hans-CN;q=0.9, en;q=0.8":        true,
		"en;q=0.8, zh;q=0.9":                true,
		"en, zh":                            false,
		"zh, en":                            true,
		"en-US,en;q=0.9,zh-CN;q=0.8":        false,
		"fr, zh;q=0.5, en;q=0.4":            true,
		"fr-CH, fr;q=0.9, de;q=0.7":         false,
		"zh;q=0, en;q=0.1":                  false,
		"zh;q=0":                            false,
		"*":                                 false,
		"*;q=0.5, zh;q=0.9":                 true,
		"de, *;q=0.5, zh;q=0.1":             false,
		"nonsense;;;":                       false,
		"zh;q=abc":                          false,
		strings.Repeat("fr,", 200) + "zh":   true,
		strings.Repeat("x", 5000):           false,
		strings.Repeat("zh-", 2000) + "zh":  false,
		"zh;q=0.0001, en;q=0.00001":         true,
		"ZH-cn":                             true,
		" zh-CN ; q=1.0 , en-GB ; q=0.9   ": true,
	} {
		for range 2 { // Read, then remembered.
			if got := l.chinese(http.Header{"Accept-Language": {header}}); got != zh {
				t.Errorf("%.60q: Chinese %v, want %v", header, got, zh)
			}
		}
	}
}

// Every route that answers is documented, and nothing else is.
func TestEveryHandlerIsDocumented(t *testing.T) {
	h, err := New(Config{Service: noService{}, AllowDevTokens: true})
	if err != nil {
		t.Fatal(err)
	}
	rt := h.(*routes)
	_, raw, err := rt.api.documentJSON()
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
	served := slices.Clone(rt.patterns)
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented %q\nserved     %q", documented, served)
	}
}

// noService is for tests that call nothing.
type noService struct{ Service }

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

// Every reason makes a problem that reads back whole, in both languages.
func TestProblemEncoder(t *testing.T) {
	at := time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	for i := range dibs.ReasonCount + 1 {
		r := dibs.Reason(i)
		for _, zh := range []bool{false, true} {
			p := problem{
				reason: r, startsAt: at, endsAt: at, remaining: 7, claimIDs: []string{"A"}, effect: dibs.EffectNone,
				faults: []dibs.Fault{{Field: "/a~1b", Problem: dibs.Text{EN: "is bad", ZH: "不对"}}},
			}
			var got dibs.Problem
			if err := json.Unmarshal(appendProblem(nil, &p, zh, "id-1"), &got); err != nil {
				t.Fatalf("%s: %v", r, err)
			}
			info := r.Info()
			want := dibs.Problem{
				Type: "urn:dibs:problem:" + info.Word, Title: info.Title.In(zh), Status: info.Status, Detail: info.Title.In(zh),
				Reason: info.Word, Code: info.Code, Retryable: info.Retryable, RequestID: "id-1", Effect: dibs.EffectNone,
				Errors: []dibs.ProblemFault{{Pointer: "/a~1b", Detail: p.faults[0].Problem.In(zh)}},
			}
			switch r {
			case dibs.NotStarted:
				want.StartsAt = &at
			case dibs.Ended:
				want.EndsAt = &at
			case dibs.SoldOut:
				want.Remaining = &p.remaining
			case dibs.LimitReached:
				want.ClaimIDs = p.claimIDs
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", r, got, want)
			}
		}
	}
}

func TestPointers(t *testing.T) {
	for location, want := range map[string]string{
		"body": "", "body.title": "/title", "body.stock.items[3]": "/stock/items/3", "query.limit": "/limit", "path.id": "/id",
	} {
		if got := pointerOf(location); got != want {
			t.Errorf("%s: %q, want %q", location, got, want)
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
	cfg := Config{Users: checks}.WithDefaults()
	u, err := newUserTokens(&cfg)
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
