package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

const (
	// hangTimeout is the timeout of calls in these tests, hangSlack what a busy
	// machine may add, and hangSlow what it may add to the quickest of hangTries.
	hangTimeout = 1500 * time.Millisecond
	hangSlack   = 15 * time.Second
	hangSlow    = 2 * time.Second
	hangTries   = 6
)

// hanging is a database on a server that can be frozen, with one row.
type hanging struct {
	*testing.T
	s  *servers.Server
	db *DB
}

func eachHanging(t *testing.T, f func(h *hanging)) {
	eachServer(t, func(t *testing.T, s *servers.Server, url string) {
		h := &hanging{T: t, s: s, db: openTest(t, url, Config{Timeout: hangTimeout, Explain: faulty})}
		works(h.T, func() error { return insert(t, h.db, "a", 1) })
		f(h)
	})
}

// works returns when a call has worked: on a busy machine some take longer than
// they may in these tests.
func works(t *testing.T, call func() error) {
	t.Helper()
	for begun := time.Now(); ; {
		err := call()
		if err == nil {
			return
		}
		if faultOf(err) < 0 || time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

// set writes a value into the row; before runs in the transaction, before the
// statement or after it.
func (h *hanging) set(ctx context.Context, n int, before, after func()) error {
	return h.db.Write(ctx, "set", func(s *Session) error {
		before()
		_, err := s.Exec(ctx, `UPDATE things SET n = ? WHERE id = 'a'`, n)
		after()
		return err
	})
}

func nothing() {}

// in reports whether a call ended as one that ran out of time should.
func in(fault Fault, err error, took time.Duration) bool {
	return faultOf(err) == fault && took < hangTimeout+hangSlack
}

// soon is in for a call that may be tried again.
func soon(fault Fault, err error, took time.Duration) bool {
	return in(fault, err, took) && took < hangTimeout+hangSlow
}

// TestHangingCommit: a server that hangs at the commit may have committed.
func TestHangingCommit(t *testing.T) {
	for name, ctx := range map[string]context.Context{"ordinary": t.Context(), "long": Long(t.Context(), LongStatement)} {
		t.Run(name, func(t *testing.T) {
			eachHanging(t, func(h *hanging) {
				// On a busy machine the time may be over before the commit: then it is tried again.
				for try := 1; ; try++ {
					begun := time.Now()
					err := h.set(ctx, 2, nothing, func() { h.s.Freeze(h.T) })
					took := time.Since(begun)
					h.s.Thaw(h.T)
					if soon(FaultUnknownEffect, err, took) {
						break
					}
					if try == hangTries || !in(FaultSlow, err, took) && !in(FaultUnknownEffect, err, took) {
						h.Fatalf("after %s: %v", took, err)
					}
				}
				// Whichever it was, the row is free again.
				works(h.T, func() error { return h.set(ctx, 3, nothing, nothing) })
			})
		})
	}
}

// TestHangingStatement: an ordinary call ends in time wherever the server
// hangs. A long one has the time of its statement, which begins anew with each.
func TestHangingStatement(t *testing.T) {
	eachHanging(t, func(h *hanging) {
		for n, most := range map[time.Duration]time.Duration{0: hangTimeout, 2: 2 * hangTimeout} {
			ctx := h.Context()
			if n > 0 {
				ctx = Long(ctx, n)
			}
			for try := 1; ; try++ {
				begun := time.Now()
				err := h.set(ctx, 2, func() { h.s.Freeze(h.T) }, nothing)
				took := time.Since(begun)
				h.s.Thaw(h.T)
				if soon(FaultSlow, err, took-most+hangTimeout) && took >= most/2 {
					break
				}
				if try == hangTries || !in(FaultSlow, err, took-most+hangTimeout) || took < most/2 {
					h.Fatalf("%d timeouts for a statement: after %s: %v", n, took, err)
				}
			}
			works(h.T, func() error {
				now, err := ReadOne(h.Context(), h.db, "read", `SELECT n FROM things WHERE id = 'a'`, nil, errors.New("no row"), Scan1[int])
				if err == nil && *now != 1 {
					h.Errorf("the row has %d", *now)
				}
				return err
			})
		}
	})
}

// TestHangingClose: a database on a frozen server, whose connections were not
// used since, is closed at once.
func TestHangingClose(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server, url string) {
		db := openTest(t, url, Config{Timeout: hangTimeout})
		noError(t, db.Ping(t.Context()))
		s.Freeze(t)
		begun := time.Now()
		if err := db.Close(); err != nil || time.Since(begun) > hangSlack {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		s.Thaw(t)
	})
}

// TestLockedFile: while another process holds the file's lock, writes end in
// time and reads go on. When the lock is free, writes go on too.
func TestLockedFile(t *testing.T) {
	db := openTest(t, fileAddress(t), Config{Timeout: MinTimeout, Explain: faulty})
	other, err := sql.Open("sqlite", db.Place())
	noError(t, err)
	closeLater(t, other)
	other.SetMaxOpenConns(1)
	exec := func(statement string) {
		t.Helper()
		if _, err := other.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("BEGIN IMMEDIATE")
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			begun := time.Now()
			err := insert(t, db, fmt.Sprint("p", i), i)
			if took := time.Since(begun); !in(FaultSlow, err, took) && !in(FaultBusy, err, took) {
				t.Errorf("a write after %s: %v", took, err)
			}
		})
	}
	wait.Wait()
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("a read: %v", err)
	}
	exec("ROLLBACK")
	works(t, func() error { return insert(t, db, "q", 1) })
}

// TestWhole: a call that is marked as whole is made although its context has ended, with
// the calls within it.
func TestWhole(t *testing.T) {
	db := openTest(t, fileAddress(t), Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a call with a context that has ended: %v", err)
	}
	noError(t, db.Write(Whole(ctx), "write", func(s *Session) error {
		s.ManyRows(fewRows + 1)
		_, err := s.Exec(ctx, "INSERT INTO things (id, n) VALUES (?,?)", "w", 1)
		return err
	}))
}

// TestTimeoutBounds: which timeouts are refused.
func TestTimeoutBounds(t *testing.T) {
	for timeout, good := range map[time.Duration]bool{
		0: true, MinTimeout: true, MaxTimeout: true, MinTimeout - 1: false, MaxTimeout + 1: false, -time.Second: false,
	} {
		err := CheckTimeout(timeout)
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "must be from 500ms to 1m0s") {
			t.Errorf("a timeout of %s: %v", timeout, err)
		}
	}
}
