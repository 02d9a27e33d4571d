package live

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
)

// away is a ledger that answers with an error until it is back.
type away struct {
	Ledger
	back atomic.Bool
}

func (a *away) answer() error {
	if a.back.Load() {
		return nil
	}
	return errors.New("connection refused")
}

func (a *away) Commands(context.Context, int64, int) ([]Command, error) { return nil, a.answer() }

func (a *away) LiveVersions(context.Context, time.Time) ([]CampaignVersion, error) {
	return nil, a.answer()
}

// several is an engine of several processes.
type several struct{ dibs.Engine }

func (several) Shared() bool { return true }

// What waits for a database is logged at once, then once a minute, and so is its end.
func TestOutageIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a := &away{}
		n := newNode(t, Config{Engine: several{}, Ledger: a, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { n.Outbox.loop(ctx) })
		for range 130 {
			n.Discover(ctx)
			<-time.After(time.Second)
		}
		synctest.Wait()
		a.back.Store(true)
		n.Discover(ctx)
		<-time.After(settleTick)
		synctest.Wait()
		cancel()
		all.Wait()
		for line, want := range map[string]int{
			"sending commands to the engine failed": 3, "commands reach the engine again": 1,
			"the live campaigns could not be read": 3, "the live campaigns can be read again": 1,
		} {
			if n := strings.Count(log.String(), line); n != want {
				t.Errorf("%d lines, not %d, say that %s:\n%s", n, want, line, log.String())
			}
		}
	})
}
