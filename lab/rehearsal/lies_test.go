package rehearsal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/lab/rehearsal"

	"github.com/dibs-dev/dibs/api"
)

func noContext() context.Context { return context.Background() }

// without is a list of claims that lacks one.
func without(id string, body []byte) []byte {
	var l api.ListView[api.ClaimView]
	if err := json.Unmarshal(body, &l); err != nil {
		return body
	}
	kept := l.Items[:0]
	for _, c := range l.Items {
		if c.ID != id {
			kept = append(kept, c)
		}
	}
	l.Items = kept
	out, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return out
}

// lies are servers that break one promise, and the promises that the rehearsal
// must find broken. It may find more: a forged claim is also not there later.
var lies = []struct {
	name   string
	tell   func() lie
	adjust func(*rehearsal.Config)
	broken string
}{
	{"one too many is granted", func() lie {
		return once(refusedFor("sold_out"), forge)
	}, nil, "no oversell by answers"},

	{"one user is granted twice", func() lie {
		return once(refusedFor("limit_reached"), forge)
	}, func(c *rehearsal.Config) { c.Stock = 100 }, "the limit holds by answers"},

	{"a granted claim is lost", func() lie {
		return sameFor(func(id string, r *http.Request, status int, body []byte) (int, []byte) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+id) {
				return http.StatusNotFound, []byte(`{"reason":"not_found","status":404}`)
			}
			return status, body
		})
	}, nil, "a yes is kept by answers"},

	{"a granted claim is not listed", func() lie {
		return sameFor(func(id string, r *http.Request, status int, body []byte) (int, []byte) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/claims") && status == http.StatusOK {
				return status, without(id, body)
			}
			return status, body
		})
	}, nil, "a yes is kept by answers"},

	{"a granted claim changes", func() lie {
		return sameFor(func(id string, r *http.Request, status int, body []byte) (int, []byte) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+id) {
				return status, replaced(body, `"quantity":1`, `"quantity":2`)
			}
			return status, body
		})
	}, nil, "a yes is kept by answers"},

	{"a yes is told as a no", func() lie {
		return once(statusOf(http.StatusCreated), func(*http.Request, int, []byte) (int, []byte) {
			return http.StatusConflict, []byte(`{"reason":"sold_out","status":409}`)
		})
	}, func(c *rehearsal.Config) { c.NoKeys, c.Repeats = true, 0 }, "no phantom by answers"},

	{"one too few is granted", func() lie {
		return once(statusOf(http.StatusCreated), func(*http.Request, int, []byte) (int, []byte) {
			return http.StatusConflict, []byte(`{"reason":"sold_out","status":409}`)
		})
	}, func(c *rehearsal.Config) { c.NoKeys, c.Repeats = true, 0 }, "no undersell by answers"},

	{"one claim is given to two users", func() lie {
		var first []byte
		user := ""
		return func(r *http.Request, status int, body []byte) (int, []byte) {
			switch {
			case isClaim(r) && status == http.StatusCreated && first == nil:
				first, user = bytes.Clone(body), userOf(r)
			case refusedFor("sold_out")(r, status, body) && first != nil && userOf(r) != user:
				return http.StatusCreated, replaced(first, user, userOf(r))
			}
			return status, body
		}
	}, func(c *rehearsal.Config) { c.Concurrency = 1 }, "no phantom by answers"},

	{"a repeat returns a new claim", func() lie {
		return once(statusOf(http.StatusOK), func(_ *http.Request, status int, body []byte) (int, []byte) {
			var v api.ClaimView
			if err := json.Unmarshal(body, &v); err != nil {
				panic(err)
			}
			return status, replaced(body, v.ID, "FORGEDFORGEDFORG")
		})
	}, nil, "a repeat returns the first result by answers"},

	{"a repeat is granted as if it were new", func() lie {
		return once(statusOf(http.StatusOK), func(_ *http.Request, _ int, body []byte) (int, []byte) {
			return http.StatusCreated, body
		})
	}, nil, "a repeat returns the first result by answers"},

	{"a repeat after the rush is granted as if it were new", func() lie {
		return once(statusOf(http.StatusOK), func(_ *http.Request, _ int, body []byte) (int, []byte) {
			return http.StatusCreated, body
		})
	}, func(c *rehearsal.Config) { c.Repeats = -1 }, "a repeat returns the first result by answers"},

	{"a repeat is refused", func() lie {
		return once(statusOf(http.StatusOK), func(*http.Request, int, []byte) (int, []byte) {
			return http.StatusConflict, []byte(`{"reason":"sold_out","status":409}`)
		})
	}, func(c *rehearsal.Config) { c.Repeats = -1 }, "a repeat returns the first result by answers"},

	{"a press meets an internal error", func() lie {
		return once(refusedFor("sold_out"), func(*http.Request, int, []byte) (int, []byte) {
			return http.StatusInternalServerError, []byte(`{"reason":"internal","status":500}`)
		})
	}, nil, "every press is answered by answers"},

	{"a press is answered by something else", func() lie {
		return func(r *http.Request, status int, body []byte) (int, []byte) {
			// Every time: a press with a key is sent again.
			if refusedFor("sold_out")(r, status, body) {
				return http.StatusBadGateway, []byte("<html>")
			}
			return status, body
		}
	}, nil, "every press is answered by answers"},

	{"a yes is for somebody else", func() lie {
		return once(statusOf(http.StatusCreated), func(r *http.Request, status int, body []byte) (int, []byte) {
			return status, replaced(body, userOf(r), "somebody-else")
		})
	}, nil, "every press is answered by answers"},

	{"the numbers are wrong", func() lie {
		return func(r *http.Request, status int, body []byte) (int, []byte) {
			if strings.HasSuffix(r.URL.Path, "/stats") {
				return status, replaced(body, `"granted":20,`, `"granted":19,`)
			}
			return status, body
		}
	}, nil, "the numbers agree by answers"},

	{"the server finds itself broken", func() lie {
		return func(r *http.Request, status int, body []byte) (int, []byte) {
			if r.URL.Path == "/v1/verify" {
				return status, replaced(body, `"held":true`, `"held":false`)
			}
			return status, body
		}
	}, nil, "no oversell by server"},
}

// TestLies proves that the checks can fail: each server breaks a promise, and
// the rehearsal says which.
func TestLies(t *testing.T) {
	for _, l := range lies {
		t.Run(l.name, func(t *testing.T) {
			cfg := serve(t, liar(l.tell()))
			if l.adjust != nil {
				l.adjust(&cfg)
			}
			r := rehearse(t, cfg)
			if r.OK || !brokenPromises(r)[l.broken] {
				t.Errorf("OK is %v, and %q is not among the broken:\n%s", r.OK, l.broken, table(t, r))
			}
			for _, v := range r.In(true).Promises {
				if v.Witness == "answers" && !hanzi.MatchString(v.Detail) {
					t.Errorf("%q in Chinese: %s", v.Promise, v.Detail)
				}
			}
		})
	}
}

// TestTwoClaimsForOneRequest: the verdict names both.
func TestTwoClaimsForOneRequest(t *testing.T) {
	r := rehearse(t, serve(t, liar(once(statusOf(http.StatusOK), func(r *http.Request, _ int, _ []byte) (int, []byte) {
		return http.StatusCreated, forged(r)
	}))))
	if text := table(t, r); !strings.Contains(text, "one request of") || !strings.Contains(text, "FORGEDFORGEDFORG and ") && !strings.Contains(text, " and FORGEDFORGEDFORG") {
		t.Errorf("the two claims are not named:\n%s", text)
	}
}
