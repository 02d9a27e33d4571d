package sqlledger

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
)

const (
	// hangTimeout is the timeout of calls in these tests, hangSlow what a busy machine
	// may add to the quickest of hangTries.
	hangTimeout = 1500 * time.Millisecond
	hangSlow    = 2 * time.Second
	hangTries   = 4
)

// servants are the servers that these tests freeze.
var servants = map[string]func() (*servers.Server, error){"mysql": servers.MariaDB, "postgres": servers.Postgres}

// hanging is a ledger with a campaign, on a server that can be frozen.
type hanging struct {
	*testing.T
	s *servers.Server
	l *Ledger
	c *dibs.Campaign
}

func eachHanging(t *testing.T, f func(h *hanging)) {
	for name, get := range servants {
		t.Run(name, func(t *testing.T) {
			s, url, _ := servers.Database(t, get)
			l, err := Open(t.Context(), url, Options{Migrate: true, Timeout: hangTimeout})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			h := &hanging{T: t, s: s, l: l, c: &dibs.Campaign{
				ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 10},
			}}
			h.works(func() error { return l.InsertCampaign(t.Context(), h.c, nil) })
			f(h)
		})
	}
}

// works returns when a call has worked: on a busy machine some take longer than
// they may in these tests.
func (h *hanging) works(call func() error) {
	h.Helper()
	for begun := time.Now(); ; {
		err := call()
		if err == nil {
			return
		}
		if !errors.Is(err, dibs.ErrUnavailable) || time.Since(begun) > time.Minute {
			h.Fatal(err)
		}
	}
}

// calls are ordinary and long calls, that read and that write.
func (h *hanging) calls() map[string]func() error {
	shard := dibs.ShardID{Campaign: h.c.Number}
	return map[string]func() error{
		"ping": func() error { return h.l.Ping(h.Context()) },
		"read": func() error { _, err := h.l.Campaign(h.Context(), "c"); return err },
		"snapshot": func() error {
			_, err := h.l.OrderList(h.Context(), orders.Filter{UserID: "u"}, dibs.Page{})
			return err
		},
		"write":  func() error { return h.l.DropPlace(h.Context(), h.c.Number, 1) },
		"settle": func() error { return h.l.Settle(h.Context(), nil) },
		"load":   func() error { _, err := h.l.LoadShard(h.Context(), h.c, shard, live.Opener{}); return err },
		"audit":  func() error { _, err := h.l.Audit(h.Context(), h.c); return err },
	}
}

// all makes every call several times at once, more than there are connections,
// and returns the errors that are not wanted.
func (h *hanging) all(wrong func(err error, took time.Duration) bool) {
	h.Helper()
	var wait sync.WaitGroup
	for name, call := range h.calls() {
		for range 3 {
			wait.Go(func() {
				var err error
				took := time.Hour
				for n := 0; n < hangTries && took > hangTimeout+hangSlow; n++ {
					begun := time.Now()
					err = call()
					took = time.Since(begun)
				}
				if wrong(err, took) {
					h.Errorf("%s after %s: %v", name, took, err)
				}
			})
		}
	}
	wait.Wait()
}

// in reports whether a call ended as one that ran out of time should.
func in(effect dibs.Effect, err error, took time.Duration) bool {
	var said *dibs.Error
	return errors.As(err, &said) && said.Reason == dibs.Unavailable && said.Effect == effect && said.RetryAfter > 0 && took < hangTimeout+hangSlow
}

// TestHangingServer: while the server is frozen every call ends in time, having
// changed nothing, whether its connection stood or had to be made. Afterwards
// everything goes on, on no more connections than there may be.
func TestHangingServer(t *testing.T) {
	eachHanging(t, func(h *hanging) {
		every := func() {
			for _, call := range h.calls() {
				h.works(call)
			}
		}
		every()
		h.s.Freeze(h.T)
		// The second time there are no connections left.
		for range 2 {
			h.all(func(err error, took time.Duration) bool { return !in(dibs.EffectNone, err, took) })
		}
		h.s.Thaw(h.T)
		every()
		if n, most := h.l.db.Connections(), serverWriters+(Options{}).WithDefaults().Readers; n > most {
			h.Errorf("there are %d connections", n)
		}
	})
}

// TestTimeoutBounds: a timeout that makes no sense is refused by its name.
func TestTimeoutBounds(t *testing.T) {
	for timeout, good := range map[time.Duration]bool{
		0: true, MinTimeout: true, MaxTimeout: true, MinTimeout - 1: false, MaxTimeout + 1: false, -time.Second: false,
	} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		l, err := OpenSQLite(t.Context(), path, Options{Migrate: true, Timeout: timeout})
		if err == nil {
			err = l.Close()
		}
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "Options.Timeout must be from 500ms to 1m0s") {
			t.Errorf("a timeout of %s: %v", timeout, err)
		}
	}
}
