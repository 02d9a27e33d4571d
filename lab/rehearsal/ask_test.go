package rehearsal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
)

// scripted is a server that answers claims one after the other as it was told,
// the last one for good.
type scripted struct {
	server
	answers []func() (answer, error)
	asked   int
}

func (s *scripted) claim(context.Context, dibs.ClaimRequest) (answer, error) {
	s.asked++
	return s.answers[min(s.asked, len(s.answers))-1]()
}

// TestAsk: a press is sent again for as long as it may have been granted, and no
// longer. A server that has no time to look costs no patience.
func TestAsk(t *testing.T) {
	says := func(reason dibs.Reason, effect dibs.Effect) func() (answer, error) {
		return func() (answer, error) { return answer{reason: reason.String(), effect: effect}, nil }
	}
	lost := func() (answer, error) { return answer{}, errors.New("the connection broke") }
	shed, unsure := says(dibs.Overloaded, dibs.EffectUnknown), says(dibs.Unavailable, dibs.EffectUnknown)
	limited, yes := says(dibs.RateLimited, ""), says(dibs.Granted, "")
	times := func(n int, what func() (answer, error)) (all []func() (answer, error)) {
		for range n {
			all = append(all, what)
		}
		return all
	}
	type answers = []func() (answer, error)
	for name, c := range map[string]struct {
		answers answers
		plain   bool // without a key
		// asked is how often, 0 for until the time is over.
		asked int
		want  answer
	}{
		"a yes":                          {answers: answers{yes}, asked: 1, want: answer{reason: "granted"}},
		"refused at the door":            {answers: answers{shed}, asked: 1, want: answer{reason: "overloaded", effect: dibs.EffectNone}},
		"refused, and nothing happened":  {answers: answers{lost, says(dibs.Unavailable, dibs.EffectNone)}, asked: 2, want: answer{reason: "unavailable", effect: dibs.EffectNone}},
		"lost, then found":               {answers: answers{lost, unsure, yes}, asked: 3, want: answer{reason: "granted"}},
		"lost, then shed for long":       {answers: append(append(answers{lost}, times(100, shed)...), yes), asked: 102, want: answer{reason: "granted"}},
		"limited at the door":            {answers: answers{limited}, asked: 1, want: answer{reason: "rate_limited"}},
		"lost, then limited, then found": {answers: answers{lost, limited, limited, yes}, asked: 4, want: answer{reason: "granted"}},
		"lost for good":                  {answers: answers{lost}, asked: moreTries + 1},
		"unsure for good":                {answers: answers{unsure}, asked: moreTries + 1, want: answer{reason: "unavailable", effect: dibs.EffectUnknown}},
		"lost and shed until the end":    {answers: answers{lost, shed}},
		"without a key, lost":            {answers: answers{lost, yes}, plain: true, asked: 1},
		"without a key, shed":            {answers: answers{says(dibs.Overloaded, dibs.EffectNone)}, plain: true, asked: 1, want: answer{reason: "overloaded", effect: dibs.EffectNone}},
		"without a key, nobody can tell": {answers: answers{unsure}, plain: true, asked: 1, want: answer{reason: "unavailable", effect: dibs.EffectUnknown}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			s := &scripted{answers: c.answers}
			req := dibs.ClaimRequest{Key: "press"}
			if c.plain {
				req.Key = ""
			}
			got, n := (&load{server: s, tally: newTally(1)}).ask(ctx, req)
			if got.reason != c.want.reason || got.effect != c.want.effect || c.asked != 0 && s.asked != c.asked {
				t.Errorf("%s: %+v after %d tries, %d of them lost, want %+v after %d", name, got, s.asked, n, c.want, c.asked)
			}
		})
	}
}
