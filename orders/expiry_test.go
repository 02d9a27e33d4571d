package orders

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs/internal/trouble"
)

// awayLedger is a ledger that is away until a time.
type awayLedger struct {
	Ledger
	until time.Time
}

func (a *awayLedger) Expire(_ context.Context, now time.Time, _ int) (int, error) {
	if now.Before(a.until) {
		return 0, errors.New("connection refused")
	}
	return 0, nil
}

// That unpaid claims stay is logged at once, then once a minute, and so is its end.
func TestOutageIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a := &awayLedger{until: time.Now().Add(130 * time.Second)}
		s := &Orders{ledger: a, trouble: trouble.New(slog.New(slog.NewTextHandler(&log, nil)), slog.LevelError), now: time.Now, sweepEvery: time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { s.Loop(ctx) })
		<-time.After(132 * time.Second)
		cancel()
		all.Wait()
		for line, want := range map[string]int{"releasing unpaid claims failed": 3, "unpaid claims are released again": 1} {
			if n := strings.Count(log.String(), line); n != want {
				t.Errorf("%d lines, not %d, say that %s:\n%s", n, want, line, log.String())
			}
		}
	})
}
