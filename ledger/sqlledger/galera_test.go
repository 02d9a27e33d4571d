package sqlledger_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// TestGalera runs the ledger on a cluster of three servers, of which one after
// the other dies.
func TestGalera(t *testing.T) {
	t.Parallel()
	g, err := servers.StartGalera(3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { noError(t, g.Stop()) }()
	noError(t, g.Node(0).Exec("", "CREATE DATABASE d"))
	ledgers := make([]*sqlledger.Ledger, 3)
	for i := range ledgers {
		ledgers[i] = openAt(t, g.Node(i).URL("d"))
		defer closeAll(t, ledgers[i])
	}
	_, err = sqlledger.OpenJournal(t.Context(), g.Node(0).URL("d"), sqlledger.Options{Migrate: true})
	if err == nil || !strings.Contains(err.Error(), "one of a Galera cluster") || !strings.Contains(err.Error(), "--engine redis") {
		t.Errorf("a journal in a cluster: %v", err)
	}
	s := newSettler(t, ledgers[0])
	t.Run("each server shows what another has committed", func(t *testing.T) { seenAtOnce(t, s, ledgers) })
	t.Run("what collides is tried again", func(t *testing.T) { collide(t, s, ledgers) })
	t.Run("a server dies", func(t *testing.T) { serverDies(t, s, g, ledgers) })
	t.Run("without a majority nothing is kept", func(t *testing.T) { noMajority(t, s, g, ledgers) })
}

// seenAtOnce settles at one server and reads at another.
func seenAtOnce(t *testing.T, s *settler, ledgers []*sqlledger.Ledger) {
	for i := range 30 {
		s.l = ledgers[i%3]
		s.grow(200)
		noError(t, s.l.Settle(t.Context(), []live.Batch{s.next}))
		totals, err := ledgers[(i+1)%3].Totals(t.Context(), s.shard)
		if err != nil || totals.Position != s.next.To {
			t.Fatalf("round %d: another server is at %s and not at %s: %v", i, totals.Position, s.next.To, err)
		}
	}
	s.check()
}

// collide settles the same batch at three servers at once: one is first, and
// the others learn that they were not, and leave nothing behind.
func collide(t *testing.T, s *settler, ledgers []*sqlledger.Ledger) {
	rounds := 60
	if text := os.Getenv("SOAK"); text != "" {
		n, err := strconv.Atoi(text)
		noError(t, err)
		rounds *= n
	}
	before, err := sqlledger.FeedRows(t.Context(), s.l, 0)
	noError(t, err)
	for range rounds {
		s.grow(50)
		errs := make([]error, len(ledgers))
		var all sync.WaitGroup
		for i, l := range ledgers {
			all.Go(func() { errs[i] = l.Settle(t.Context(), []live.Batch{s.next}) })
		}
		all.Wait()
		done := 0
		for _, err := range errs {
			switch {
			case err == nil:
				done++
			case !errors.Is(err, dibs.ErrPositionMoved):
				t.Errorf("a settling that came too late: %v", err)
			}
		}
		if done != 1 {
			t.Fatalf("the batch was settled %d times: %v", done, errs)
		}
	}
	s.check()
	told, err := sqlledger.FeedRows(t.Context(), s.l, before)
	if err != nil || told != int64(rounds) {
		t.Errorf("%d batches were told as %d: %v", rounds, told, err)
	}
}

// serverDies kills the server that is written to: the others go on.
func serverDies(t *testing.T, s *settler, g *servers.Galera, ledgers []*sqlledger.Ledger) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s.l = ledgers[2]
	s.grow(100)
	s.settle(ctx)
	s.grow(100)
	settling := make(chan error, 1)
	go func() { settling <- ledgers[2].Settle(ctx, []live.Batch{s.next}) }()
	g.Node(2).Kill()
	first := <-settling
	s.l = ledgers[1]
	errs := s.settle(ctx)
	t.Logf("at the killed server: %v; at another: %v", first, errs)
	s.check()
	noError(t, g.Node(2).Start())
	s.l = ledgers[2]
	s.grow(100)
	s.settle(ctx)
	s.check()
}

// noMajority kills two of three: the third refuses everything and says why, and
// goes on once another is back.
func noMajority(t *testing.T, s *settler, g *servers.Galera, ledgers []*sqlledger.Ledger) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	g.Node(1).Kill()
	g.Node(2).Kill()
	s.l = ledgers[0]
	s.grow(100)
	err := s.l.Settle(ctx, []live.Batch{s.next})
	for ; !strings.Contains(errorText(err), "cluster's majority"); err = s.l.Settle(ctx, []live.Batch{s.next}) {
		if !errors.Is(err, dibs.ErrUnavailable) || ctx.Err() != nil {
			t.Fatalf("without a majority: %v", err)
		}
	}
	if !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("a server without a majority says %v", err)
	}
	if err := s.l.Ping(ctx); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("it says of itself: %v", err)
	}
	noError(t, g.Node(0).Exec("", "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=true'"))
	noError(t, g.Node(1).Start())
	s.settle(ctx)
	s.check()
	s.l = ledgers[1]
	s.check()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
