package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/live"
)

// TestSettleCommitFails: after a failed commit the ledger goes on, on another
// connection, and the batch can be settled again.
func TestSettleCommitFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openLedger(t, path)
	c := &dibs.Campaign{ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 10}}
	if err := l.InsertCampaign(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	shard := dibs.ShardID{Campaign: c.Number}
	load, err := l.LoadShard(t.Context(), c, shard, live.Opener{})
	if err != nil {
		t.Fatal(err)
	}
	b := bigBatch(c, load.Epoch, 3)
	mend := breakCommit(t, path, "claims")
	unknownEffect(t, "a settle whose commit fails", l.Settle(t.Context(), []live.Batch{b}))
	if totals, err := l.Totals(t.Context(), shard); err != nil || totals.StockLeft != 10 {
		t.Errorf("totals after it: %+v, %v", totals, err)
	}
	mend()
	if err := l.Settle(t.Context(), []live.Batch{b}); err != nil {
		t.Errorf("the same batch again: %v", err)
	}
	if totals, err := l.Totals(t.Context(), shard); err != nil || totals.StockLeft != 7 {
		t.Errorf("totals after that: %+v, %v", totals, err)
	}
	closeAll(t, l)
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
		// On a busy machine a server may be back before anything was asked of it.
		for round := 0; round < 3 || failed == 0 && round < 20; round++ {
			batches := make(chan int)
			restarted := make(chan error, 1)
			go func() {
				// The kill falls into one of the next batches, wherever it is.
				for n := range batches {
					if n == 3+round%3 {
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
				r.grow(500 * (round%3 + 1))
				batches <- n
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

// TestServerIdleConnections: connections that the server ended while they were idle are replaced before a call fails.
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
		r.settled(l.Settle(t.Context(), []live.Batch{r.next}))
		r.check()
	})
}

// TestServerCommitCut cuts the connection at the COMMIT: the effect is unknown,
// and the position tells it.
func TestServerCommitCut(t *testing.T) {
	for _, afterwards := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server received it: %v", afterwards), func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *servers.Server) {
				url, _ := s.DatabaseFor(t)
				p := newProxy(t, s.Port())
				l := openAt(t, p.through(url))
				defer closeAll(t, l)
				r := newSettler(t, l)
				r.grow(700)
				p.cutNext("COMMIT", afterwards)
				unknownEffect(t, "a settle whose commit is cut", l.Settle(t.Context(), []live.Batch{r.next}))
				errs := r.settle(t.Context())
				if afterwards != (len(errs) == 1 && errors.Is(errs[0], dibs.ErrPositionMoved)) {
					t.Errorf("settling again: %v", errs)
				}
				r.check()
			})
		})
	}
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
		go func() { settled <- l.Settle(t.Context(), []live.Batch{r.next}) }()
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
