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
	base := plan.Default()
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
	one, many := loads{single}, loads{grants}
	engine, ledger := engineCost(plan.Memory, base.Engines[plan.Memory], one, many), ledgerCost(plan.SQLite, one, many)
	near("disk", engine.SyncUS, 900-120-4)
	near("row", ledger.RowUS+ledger.NodeUS, 10)
	near("transaction", ledger.CommitUS, 2_000)
	// A tenth of the requests of each load is the first one of a connection, which costs
	// 25 µs more on the node and 35 more in the client; in the last load all are.
	refusals := load(10_000, 60+2.5, 50+3.5, 0, 0, 0)
	refusals.rush.wave = 1_000
	grants.after.cpu += 2.5 * 10_000 / 1e6
	grants.clientAfter += 3.5 * 10_000 * time.Microsecond
	cal := &plan.Calibration{Engines: map[string]*plan.EngineCost{plan.Memory: engine}, Ledgers: map[string]*plan.LedgerCost{plan.SQLite: ledger}}
	client, node := requestCosts(cal, many, loads{refusals}, loads{load(10_000, 85, 95, 0, 0, 0)})
	near("granted", node.GrantedUS, 100)
	near("refused", node.RefusedUS, 60)
	near("first", node.FirstUS, 25)
	near("client", client.RequestUS, 60)
	near("client's first", client.FirstUS, 35)
	// A call of Redis costs 20 µs and 5 for each claim; so does a row of a server.
	engine, ledger = engineCost(plan.Redis, base.Engines[plan.Redis], one, many), ledgerCost(plan.MySQL, one, many)
	near("call", engine.StepUS, 20)
	near("claim", engine.ClaimUS, 5)
	near("row of a server", ledger.RowUS, 10)
	near("transaction of a server", ledger.CommitUS, 2_000)
}

// TestMiddle: a round that cost far more than the others, or less, moves no cost.
func TestMiddle(t *testing.T) {
	var l loads
	for _, us := range []float64{900, 100, 110, 5, 105} {
		l = append(l, load(1_000, us, 0, 0, 0, 0))
	}
	if got := l.middle((*seen).serverUS); math.Abs(got-105) > 1e-6 {
		t.Errorf("the middle of five is %g", got)
	}
	if got := l[1:3].middle((*seen).serverUS); math.Abs(got-105) > 1e-6 {
		t.Errorf("the middle of two is %g", got)
	}
	if got := l.sorted((*seen).serverUS); got[0] > 5.01 || got[4] < 899 {
		t.Errorf("they are from %g to %g", got[0], got[4])
	}
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
		"": plan.Memory, "memory": plan.Memory, "redis://a": plan.Redis, "rediss://a": plan.Redis, "unix:///run/redis.sock": plan.Redis,
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
