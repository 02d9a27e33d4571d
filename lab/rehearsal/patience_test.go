package rehearsal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestPatience: a request is sent again until its time is over; a server that has
// said nothing for as long is not waited for again, and one that answers others is.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatience(time.Minute)
		took := func(again bool) (time.Duration, int) {
			begin, tries := time.Now(), 0
			p.keep(t.Context(), func(context.Context) bool { tries++; return again })
			return time.Since(begin), tries
		}
		if d, n := took(true); d < time.Minute || d > time.Minute+2*longestWait || n < 50 {
			t.Errorf("given up after %s and %d tries, want a minute", d, n)
		}
		if d, n := took(true); d != 0 || n != 1 {
			t.Errorf("a server that is silent was waited for again, %s and %d tries", d, n)
		}
		if d, n := took(false); d != 0 || n != 1 {
			t.Errorf("an answer took %s and %d tries", d, n)
		}
		if d, _ := took(true); d < time.Minute {
			t.Errorf("a server that has answered meanwhile was waited for %s only", d)
		}
		// One request that is put off for ever ends, however well others are answered.
		begin := time.Now()
		bounded, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		p.keep(bounded, func(ctx context.Context) bool {
			p.keep(ctx, func(context.Context) bool { return false })
			return true
		})
		if d := time.Since(begin); d < time.Minute || d > time.Minute+2*longestWait {
			t.Errorf("given up after %s while others were answered, want a minute", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		took(false)
		if _, err := read(ctx, p, func(context.Context) (int, error) { return 0, errors.New("no answer") }); err == nil {
			t.Error("no error from a server that does not answer")
		}
		if _, err := read(ctx, p, func(context.Context) (int, error) { return 1, nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("asked after the end: %v", err)
		}
	})
}

// TestAskAgain: presses whose effect is unknown at the end of the load are asked for
// once the server is back; those that stay unknown stay so.
func TestAskAgain(t *testing.T) {
	lost := func() (answer, error) { return answer{}, errors.New("the connection broke") }
	busy := func() (answer, error) { return answer{reason: dibs.Unavailable.String(), again: true}, nil }
	for name, c := range map[string]struct {
		last func() (answer, error)
		want fate
	}{
		"granted":  {func() (answer, error) { return answer{reason: granted, replayed: true}, nil }, yes},
		"sold out": {func() (answer, error) { return answer{reason: dibs.SoldOut.String()}, nil }, no},
		"unknown":  {busy, unanswered},
		"lost":     {lost, unanswered},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{answers: []func() (answer, error){lost, busy, lost, c.last}}
			l := &load{plan: &plan{presses: []press{{}}, keys: true}, tally: newTally(1)}
			l.tally.fates[0] = unanswered
			l.askAgain(t.Context(), patient{s, newPatience(time.Minute)}, progress{})
			grants := 0
			if c.want == yes {
				grants = 1
			}
			if l.tally.fates[0] != c.want || len(l.tally.grants) != grants || s.asked < 4 {
				t.Errorf("%s: fate %d after %d tries with %d grants, want %d", name, l.tally.fates[0], s.asked, len(l.tally.grants), c.want)
			}
		})
	}
}
