package measure

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/lab/rehearsal"
	"github.com/dibs-dev/dibs/plan"
)

// load is what a load showed, in round numbers.
func load(requests int, serverUS, clientUS float64, steps, stepsIn, claims float64) *seen {
	n := float64(requests)
	x := &seen{rush: rush{requests: requests}, report: &rehearsal.Report{LoadMS: 1000}}
	x.after = counts{cpu: serverUS * n / 1e6, steps: steps, stepsIn: stepsIn, stepClaims: claims}
	x.clientAfter = time.Duration(clientUS * n * 1e3)
	return x
}

// TestWorkedOut gets the costs back from loads that were made of them.
func TestWorkedOut(t *testing.T) {
	m := &measuring{base: plan.Default(), cal: &plan.Calibration{Engines: map[string]*plan.EngineCost{}, Ledgers: map[string]*plan.LedgerCost{}}}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: %g µs, want %g", what, got, want)
		}
	}
	// Steps of one claim take 900 µs with the disk, those of 50 claims more.
	single := load(lone, 300, 80, lone, lone*900e-6, lone)
	single.drained = counts{transactions: 1, transactionsIn: (2_000 + 10*lone) / 1e6}
	grants := load(10_000, 100+4+120./50, 70, 200, 1, 10_000)
	grants.left, grants.settling = 10_000, 10_000*10/1e6
	grants.drained = counts{transactions: 2, transactionsIn: (2*2_000 + 10*10_000) / 1e6}
	single.after.redis, grants.after.redis = lone*25/1e6, 10_000*(5+20./50)/1e6
	m.engine(plan.Memory, single, grants)
	near("disk", m.cal.Engines[plan.Memory].SyncUS, 900-120-4)
	m.ledger(plan.SQLite, single, grants)
	near("row", m.cal.Ledgers[plan.SQLite].RowUS+m.cal.Ledgers[plan.SQLite].NodeUS, 10)
	near("transaction", m.cal.Ledgers[plan.SQLite].CommitUS, 2_000)
	// A tenth of the requests of each load is the first one of a connection, which costs
	// 25 µs more on the node and 35 more in the client; in the last load all are.
	refusals := load(10_000, 60+2.5, 50+3.5, 0, 0, 0)
	refusals.rush.wave = 1_000
	grants.after.cpu += 2.5 * 10_000 / 1e6
	grants.clientAfter += 3.5 * 10_000 * time.Microsecond
	m.requests(grants, refusals, load(10_000, 85, 95, 0, 0, 0))
	near("granted", m.cal.Node.GrantedUS, 100)
	near("refused", m.cal.Node.RefusedUS, 60)
	near("first", m.cal.Node.FirstUS, 25)
	near("client", m.cal.Client.RequestUS, 60)
	near("client's first", m.cal.Client.FirstUS, 35)
	// A call of Redis costs 20 µs and 5 for each claim; so does a row of a server.
	m.engine(plan.Redis, single, grants)
	near("call", m.cal.Engines[plan.Redis].StepUS, 20)
	near("claim", m.cal.Engines[plan.Redis].ClaimUS, 5)
	m.ledger(plan.MySQL, single, grants)
	near("row of a server", m.cal.Ledgers[plan.MySQL].RowUS, 10)
	near("transaction of a server", m.cal.Ledgers[plan.MySQL].CommitUS, 2_000)
}

// TestBearable halves a load's connections until its requests are answered, and no further
// than a rush has them.
func TestBearable(t *testing.T) {
	slow := &unansweredError{rehearsal.Transport{Lost: 1_298, Example: "EOF"}}
	broken := errors.New("no server")
	var said strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }
	for _, one := range []struct {
		from, to rush
		err      error
	}{
		{from: rush{requests: 5_000, wave: 5_000}, to: rush{requests: 1_250, wave: 1_250}},
		{from: rush{requests: 12_000, wave: 2_500}, to: rush{requests: 12_000, wave: 1_250}},
		{from: rush{requests: 300, wave: 300}, to: rush{requests: 150, wave: 150}, err: slow},
		{from: rush{requests: 5_000, wave: 5_000}, to: rush{requests: 5_000, wave: 5_000}, err: broken},
	} {
		last := rush{}
		x, err := one.from.bearable(func(r rush) (*seen, error) {
			last = r
			if one.err != nil {
				return nil, one.err
			}
			if r.wave > 2_000 {
				return nil, slow
			}
			return &seen{rush: r}, nil
		}, say)
		if last != one.to || !errors.Is(err, one.err) || err == nil && x.rush != last {
			t.Errorf("%+v ended as %+v: %v", one.from, last, err)
		}
	}
	if want := "1298 attempts got no answer at first, and 0 requests none at all: EOF; once more with 2500 connections"; !strings.Contains(said.String(), want) {
		t.Errorf("it said %q", said.String())
	}
}

// TestKind knows engines and ledgers by their addresses.
func TestKind(t *testing.T) {
	for address, want := range map[string]string{
		"": plan.Memory, "memory": plan.Memory, "redis://a": plan.Redis, "rediss://a": plan.Redis,
		"mysql://a": plan.MySQL, "postgres://a": plan.Postgres, "sqlite:a.db": plan.SQLite,
	} {
		if got := kind(address); got != want {
			t.Errorf("%q is %s", address, got)
		}
	}
	if got := ledgerKind(""); got != plan.SQLite {
		t.Errorf("without an address the ledger is %s", got)
	}
}
