package rehearsal_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// away is a server that answers nothing but a refusal once the load is over: for so
// many calls for which when is true.
func away(presses, calls int64, reason string, when func(*http.Request) bool) func(http.Handler) http.Handler {
	var claims, refused atomic.Int64
	return func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isClaim(r) {
				claims.Add(1)
			}
			if claims.Load() < presses || isClaim(r) && claims.Load() == presses || !when(r) || refused.Add(1) > calls {
				honest.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			// A client that is gone needs no answer.
			_, _ = w.Write([]byte(`{"reason":"` + reason + `","status":503,"retryable":true,"effect":"none"}`))
		})
	}
}

func always(*http.Request) bool { return true }

// An outage that is over before patience is has broken nothing: what was put off is
// asked again, claims and reports alike.
func TestOutageAfterTheLoad(t *testing.T) {
	for _, reason := range []string{"overloaded", "unavailable", "rate_limited"} {
		cfg := serve(t, away(120, 100, reason, always))
		cfg.Patience = 0
		if r := rehearse(t, cfg); !r.OK {
			t.Errorf("after an outage (%s):\n%s", reason, table(t, r))
		}
	}
}

// When the server puts off all repeats to the end, it is not known what they return:
// that is neither held nor broken.
func TestOutageToTheEnd(t *testing.T) {
	r := rehearse(t, serve(t, away(120, 1<<40, "overloaded", isClaim)))
	for _, v := range r.Promises {
		want := rehearsal.Held
		if v.Promise == "a repeat returns the first result" {
			want = rehearsal.Unjudged
		}
		if v.Judgement != want {
			t.Errorf("%s: %s, want %s", v.Promise, v.Judgement, want)
		}
	}
	for _, want := range []string{"COULD NOT BE JUDGED", "20 of 20 requests could not be repeated", "put off to the end: overloaded", "NOT JUDGED: nothing is broken, and 1 of"} {
		if text := table(t, r); r.OK || !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

// One false answer among those that could be had is enough for a verdict.
func TestOutageHidesNoFault(t *testing.T) {
	var told atomic.Bool
	cfg := serve(t, func(honest http.Handler) http.Handler {
		busy := away(120, 1<<40, "overloaded", func(r *http.Request) bool { return isClaim(r) && told.Load() })(honest)
		var claims atomic.Int64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isClaim(r) && claims.Add(1) > 120 && told.CompareAndSwap(false, true) {
				w.WriteHeader(http.StatusConflict)
				// A client that is gone needs no answer.
				_, _ = w.Write([]byte(`{"reason":"sold_out","status":409,"retryable":true}`))
				return
			}
			busy.ServeHTTP(w, r)
		})
	})
	if r := rehearse(t, cfg); !brokenPromises(r)["a repeat returns the first result by answers"] {
		t.Errorf("a repeat that was refused:\n%s", table(t, r))
	}
}
