package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

const (
	// hangTimeout is the timeout of calls in these tests, hangSlack what a busy machine
	// may add.
	hangTimeout = 1500 * time.Millisecond
	hangSlack   = 1500 * time.Millisecond
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

// works returns when a call has worked: on a busy machine some take longer than they
// may in these tests.
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
			_, err := h.l.OrderList(h.Context(), dibs.OrderFilter{UserID: "u"}, dibs.Page{})
			return err
		},
		"write":  func() error { return h.l.DropPlace(h.Context(), h.c.Number, 1) },
		"settle": func() error { return h.l.Settle(h.Context(), nil) },
		"load":   func() error { _, err := h.l.LoadShard(h.Context(), h.c, shard, dibs.Opener{}); return err },
		"audit":  func() error { _, err := h.l.Audit(h.Context(), h.c); return err },
	}
}

// all makes every call several times at once, more than there are connections, and
// returns the errors that are not wanted.
func (h *hanging) all(wrong func(err error, took time.Duration) bool) {
	h.Helper()
	var wait sync.WaitGroup
	for name, call := range h.calls() {
		for range 3 {
			wait.Go(func() {
				begun := time.Now()
				if err := call(); wrong(err, time.Since(begun)) {
					h.Errorf("%s after %s: %v", name, time.Since(begun), err)
				}
			})
		}
	}
	wait.Wait()
}

// in reports whether a call ended as one that ran out of time should.
func in(effect dibs.Effect, err error, took time.Duration) bool {
	var said *dibs.Error
	return errors.As(err, &said) && said.Reason == dibs.Unavailable && said.Effect == effect && said.RetryAfter > 0 && took < hangTimeout+hangSlack
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
		if n := Connections(h.l); n > serverWriters+h.l.opts.Readers {
			h.Errorf("there are %d connections", n)
		}
	})
}

// TestHangingCommit: a server that hangs at the commit may have committed.
func TestHangingCommit(t *testing.T) {
	for name, ctx := range map[string]context.Context{"ordinary": t.Context(), "long": long(t.Context(), longStatement)} {
		t.Run(name, func(t *testing.T) {
			eachHanging(t, func(h *hanging) {
				begun := time.Now()
				err := h.l.write(ctx, "hang", func(s *session) error {
					_, err := s.exec(ctx, `UPDATE campaigns SET title = 'hung' WHERE id = 'c'`)
					h.s.Freeze(h.T)
					return err
				})
				if took := time.Since(begun); !in(dibs.EffectUnknown, err, took) {
					h.Errorf("after %s: %v", took, err)
				}
				h.s.Thaw(h.T)
				// Whichever it was, the row is free again.
				h.works(func() error {
					return h.l.write(ctx, "go on", func(s *session) error {
						_, err := s.exec(ctx, `UPDATE campaigns SET title = 'on' WHERE id = 'c'`)
						return err
					})
				})
			})
		})
	}
}

// TestHangingStatement: an ordinary call ends in time wherever the server hangs; a
// long one has the time of its statement, which begins anew with each.
func TestHangingStatement(t *testing.T) {
	eachHanging(t, func(h *hanging) {
		for n, most := range map[time.Duration]time.Duration{0: hangTimeout, 2: 2 * hangTimeout} {
			ctx := h.Context()
			if n > 0 {
				ctx = long(ctx, n)
			}
			begun := time.Now()
			err := h.l.write(ctx, "hang", func(s *session) error {
				h.s.Freeze(h.T)
				begun = time.Now()
				_, err := s.exec(ctx, `UPDATE campaigns SET title = 'hung' WHERE id = 'c'`)
				return err
			})
			h.s.Thaw(h.T)
			if took := time.Since(begun); !in(dibs.EffectNone, err, took-most+hangTimeout) || took < most/2 {
				h.Errorf("%d timeouts for a statement: after %s: %v", n, took, err)
			}
			h.works(func() error {
				c, err := h.l.Campaign(h.Context(), "c")
				if err == nil && c.Title == "hung" {
					h.Errorf("the campaign afterwards: %+v", c)
				}
				return err
			})
		}
	})
}

// TestHangingClose: a ledger on a frozen server, whose connections were not used
// since, is closed at once.
func TestHangingClose(t *testing.T) {
	for name, get := range servants {
		t.Run(name, func(t *testing.T) {
			s, url, _ := servers.Database(t, get)
			l, err := Open(t.Context(), url, Options{Migrate: true, Timeout: hangTimeout})
			if err == nil {
				err = l.Ping(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Freeze(t)
			begun := time.Now()
			if err := l.Close(); err != nil || time.Since(begun) > hangTimeout {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	}
}

// TestLockedFile: while another process holds the file's lock, writes end in time and
// reads go on. When the lock is free, writes go on too.
func TestLockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := OpenSQLite(t.Context(), path, Options{Migrate: true, Timeout: MinTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("BEGIN IMMEDIATE")
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			begun := time.Now()
			err := l.InsertProduct(t.Context(), &dibs.Product{ID: fmt.Sprint("p", i), Name: "p"})
			if took := time.Since(begun); !in(dibs.EffectNone, err, took) {
				t.Errorf("a write after %s: %v", took, err)
			}
		})
	}
	wait.Wait()
	if err := l.Ping(t.Context()); err != nil {
		t.Errorf("a read: %v", err)
	}
	exec("ROLLBACK")
	if err := errors.Join(db.Close(), l.InsertProduct(t.Context(), &dibs.Product{ID: "q", Name: "q"})); err != nil {
		t.Errorf("a write when the lock is free: %v", err)
	}
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
