package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

// settler settles a journal of its own making, batch by batch, as the service
// does: what fails is settled again, and the position says how far it went.
type settler struct {
	t     *testing.T
	l     *sqlledger.Ledger
	c     *dibs.Campaign
	shard dibs.ShardID
	next  dibs.Batch
	units int64
}

func newSettler(t *testing.T, l *sqlledger.Ledger) *settler {
	t.Helper()
	s := &settler{t: t, l: l, c: &dibs.Campaign{
		ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 1_000_000},
	}}
	if err := l.InsertCampaign(t.Context(), s.c, nil); err != nil {
		t.Fatal(err)
	}
	s.shard = dibs.ShardID{Campaign: s.c.Number}
	load, err := l.LoadShard(t.Context(), s.c, s.shard, dibs.Opener{})
	if err != nil {
		t.Fatal(err)
	}
	s.next = bigBatch(s.c, load.Epoch, 0)
	s.settled(l.Settle(t.Context(), []dibs.Batch{s.next}))
	return s
}

// grow makes the next batch, of n grants.
func (s *settler) grow(n int) {
	last := s.next.To
	s.next = dibs.Batch{Campaign: s.c, Shard: s.shard, Fence: last.Epoch, From: last, To: last}
	for range n {
		s.next.To.Seq++
		s.next.Entries = append(s.next.Entries, dibs.Entry{
			Cursor: s.next.To, Kind: dibs.EntryGrant, UserID: fmt.Sprintf("u%d", s.next.To.Seq), Quantity: 1,
		})
	}
	s.units += int64(n)
}

// settled checks a settling that had to work.
func (s *settler) settled(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// settle settles the batch until it is in, and returns the errors on the way.
func (s *settler) settle(ctx context.Context) (errs []error) {
	s.t.Helper()
	for {
		err := s.l.Settle(ctx, []dibs.Batch{s.next})
		if err == nil {
			return errs
		}
		errs = append(errs, err)
		if errors.Is(err, dibs.ErrPositionMoved) {
			totals, err := s.l.Totals(ctx, s.shard)
			if err == nil && totals.Position == s.next.To {
				return errs
			}
			if err == nil {
				s.t.Fatalf("the position moved to %s on the way to %s", totals.Position, s.next.To)
			}
			continue
		}
		if !errors.Is(err, dibs.ErrUnavailable) {
			s.t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			s.t.Fatal(errors.Join(append(errs, ctx.Err())...))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// check audits what was settled: nothing is missing and nothing is there twice.
func (s *settler) check() {
	s.t.Helper()
	a, err := s.l.Audit(s.t.Context(), s.c)
	if err != nil || a.Claims != s.units || a.Held != s.units || len(a.BadTotals)+len(a.OverLimit) > 0 || a.BeyondPosition != 0 {
		s.t.Errorf("after %d units the audit says %+v, %v", s.units, a, err)
	}
	totals, err := s.l.Totals(s.t.Context(), s.shard)
	if err != nil || totals.Position != s.next.To {
		s.t.Errorf("the position is %s instead of %s: %v", totals.Position, s.next.To, err)
	}
}

// TestServerKilled kills the server while it settles, and starts it again: the
// ledger finds it by itself, and nothing is doubled or missing.
func TestServerKilled(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		r := newSettler(t, l)
		failed := 0
		for round := range 3 {
			batches := make(chan int)
			restarted := make(chan error, 1)
			go func() {
				// The kill falls into one of the next batches, wherever it is.
				for n := range batches {
					if n == 3+round {
						s.Kill()
						restarted <- s.Start()
						break
					}
				}
				for range batches {
				}
			}()
			over := false
			for n := 0; !over; n++ {
				batches <- n
				r.grow(500 * (round + 1))
				failed += len(r.settle(ctx))
				select {
				case err := <-restarted:
					r.settled(err)
					over = true
				default:
				}
			}
			close(batches)
			r.grow(1)
			failed += len(r.settle(ctx))
			r.check()
		}
		if failed == 0 {
			t.Error("no settling failed: the kills missed them")
		}
	})
}

// TestServerIdleConnections: connections that the server ended while nobody
// used them are replaced before anybody notices.
func TestServerIdleConnections(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		p := newProxy(t, s.Port())
		l := openAt(t, p.through(url))
		defer closeAll(t, l)
		r := newSettler(t, l)
		if _, err := l.Totals(t.Context(), r.shard); err != nil {
			t.Fatal(err)
		}
		p.cutAll()
		p.awaitEnd()
		r.grow(3)
		r.settled(l.Settle(t.Context(), []dibs.Batch{r.next}))
		r.check()
	})
}

// TestServerCommitCut cuts the connection at the COMMIT: the effect is
// unknown, and the position tells it.
func TestServerCommitCut(t *testing.T) {
	for _, afterwards := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server heard it: %v", afterwards), func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *servers.Server) {
				url, _ := s.DatabaseFor(t)
				p := newProxy(t, s.Port())
				l := openAt(t, p.through(url))
				defer closeAll(t, l)
				r := newSettler(t, l)
				r.grow(700)
				p.cutNext("COMMIT", afterwards)
				unknownEffect(t, "a settle whose commit is cut", l.Settle(t.Context(), []dibs.Batch{r.next}))
				errs := r.settle(t.Context())
				if afterwards != (len(errs) == 1 && errors.Is(errs[0], dibs.ErrPositionMoved)) {
					t.Errorf("settling again: %v", errs)
				}
				r.check()
			})
		})
	}
}

// TestServerAppendCut is TestServerCommitCut for the journal, whose lock goes
// with the connection: the owner has it back, and nobody else gets it.
func TestServerAppendCut(t *testing.T) {
	for _, afterwards := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server heard it: %v", afterwards), func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *servers.Server) {
				url, _ := s.DatabaseFor(t)
				p := newProxy(t, s.Port())
				j := openJournalAt(t, p.through(url))
				defer closeAll(t, j)
				generation, err := j.Acquire(t.Context(), "the test")
				if err != nil {
					t.Fatal(err)
				}
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				must(j.Append(t.Context(), generation, oneRow(1)))
				p.cutNext("COMMIT", afterwards)
				unknownEffect(t, "an append whose commit is cut", j.Append(t.Context(), generation, oneRow(2)))
				if err := j.Append(t.Context(), generation, oneRow(2)); !errors.Is(err, dibs.ErrUnavailable) {
					t.Errorf("append before reopening: %v", err)
				}
				must(j.Reopen(t.Context()))
				end := uint32(1)
				if afterwards {
					end = 2
				}
				must(endsAt(j, end))
				other := openJournalAt(t, url)
				defer closeAll(t, other)
				if _, err := other.Acquire(t.Context(), "somebody else"); !errors.Is(err, dibs.ErrOwned) {
					t.Errorf("a second owner: %v", err)
				}
				must(j.Append(t.Context(), generation, oneRow(end+1)))
				must(endsAt(j, end+1))
			})
		})
	}
}

// oneRow is a row of one entry.
func oneRow(seq uint32) []dibs.JournalRow {
	return []dibs.JournalRow{{Shard: dibs.ShardID{Campaign: 1}, Epoch: 1, First: seq, Last: seq, Payload: []byte("x")}}
}

// TestServerLockLost ends the owner's connection: the owner takes the lock
// back by itself, unless another process was faster, which fences it.
func TestServerLockLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		p := newProxy(t, s.Port())
		j := openJournalAt(t, p.through(url))
		defer closeAll(t, j)
		generation, err := j.Acquire(t.Context(), "the test")
		if err == nil {
			err = j.Append(t.Context(), generation, oneRow(1))
		}
		if err != nil {
			t.Fatal(err)
		}
		p.cutAll()
		p.awaitEnd()
		if err := j.Append(t.Context(), generation, oneRow(2)); err != nil {
			t.Errorf("append on a new connection: %v", err)
		}
		other := openJournalAt(t, url)
		defer closeAll(t, other)
		if _, err := other.Acquire(t.Context(), "somebody else"); !errors.Is(err, dibs.ErrOwned) {
			t.Errorf("a second owner: %v", err)
		}
		p.cutAll()
		p.awaitEnd()
		if _, err := other.Acquire(t.Context(), "somebody else"); err != nil {
			t.Errorf("acquire while the owner is away: %v", err)
		}
		if err := j.Append(t.Context(), generation, oneRow(3)); !errors.Is(err, dibs.ErrFenced) {
			t.Errorf("append of the one that was away: %v", err)
		}
		if err := endsAt(other, 2); err != nil {
			t.Error(err)
		}
	})
}

// TestServerLockKept: an owner that has nothing to append gets a lost lock back
// all the same.
func TestServerLockKept(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		p := newProxy(t, s.Port())
		j := openJournalAt(t, p.through(url))
		defer closeAll(t, j)
		sqlledger.BeatEvery(j, 10*time.Millisecond)
		if _, err := j.Acquire(t.Context(), "the test"); err != nil {
			t.Fatal(err)
		}
		other := openJournalAt(t, url)
		defer closeAll(t, other)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		holder := func() int64 {
			n, err := sqlledger.Holder(ctx, other)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := holder()
		p.cutAll()
		for after := before; after == before || after == 0; {
			after = holder()
		}
		if _, err := other.Acquire(t.Context(), "somebody else"); !errors.Is(err, dibs.ErrOwned) {
			t.Errorf("a second owner: %v", err)
		}
	})
}

// TestServerDeadlock makes the database end a settling in favour of another
// transaction: it settles all the same.
func TestServerDeadlock(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		r := newSettler(t, l)
		db, err := s.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(t, raw, db)
		begin := []string{"BEGIN", "SET LOCAL deadlock_timeout = '20s'"}
		waiting := `SELECT COUNT(*) FROM pg_locks WHERE NOT granted`
		if strings.HasPrefix(url, "mysql") {
			// The one that has changed less is ended: this one changes more.
			begin = []string{
				"START TRANSACTION", "INSERT INTO products (id, name, thumbnail, price, currency, status, stock, stock_left, description, comment, version, created_at, updated_at) " +
					"SELECT CONCAT('p', seq), '', '', 0, '', 1, 0, 0, '', '', 1, 0, 0 FROM seq_1_to_3000",
			}
			waiting = `SELECT COUNT(*) FROM information_schema.innodb_lock_waits`
		}
		exec := func(statement string) {
			t.Helper()
			if _, err := raw.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		for _, statement := range begin {
			exec(statement)
		}
		exec("UPDATE campaigns SET comment = 'x'")
		r.grow(3)
		settled := make(chan error, 1)
		go func() { settled <- l.Settle(t.Context(), []dibs.Batch{r.next}) }()
		// It has the position and waits for the campaign.
		for n := 0; n == 0; {
			// Asked without a pause, MariaDB would never look anew.
			<-time.After(200 * time.Millisecond)
			if err := raw.QueryRowContext(t.Context(), waiting).Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
		exec("UPDATE positions SET stock = stock")
		exec("COMMIT")
		if err := <-settled; err != nil {
			t.Errorf("the settling that was ended: %v", err)
		}
		r.check()
	})
}
