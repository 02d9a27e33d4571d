package measure

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/plan"
)

// TestComparison finds the figure that is off most, and leaves out what is not judged.
func TestComparison(t *testing.T) {
	c := &Comparison{Requests: 5_000, Wave: 500, Stock: 200, Cores: 1.5, Figures: []Figure{
		{Rate, 1_100, 1_000, 987, 1_234, true}, {P99, 80, 100, 100, 100, true}, {Lag, 10, 1, 1, 1, false}, {Spent, 101, 100, 100, 100, true},
	}}
	if got := c.Worst(); math.Abs(got-0.2) > 1e-9 {
		t.Errorf("off by %g at most", got)
	}
	var b strings.Builder
	if err := Table(&b, []*Comparison{c}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5,000 requests, 500 at once, 200 units", "+10%", "-20%", "not judged", "1,100", "987", "1,234"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

// TestJudged: a wait for the ledger is judged from two fifths of a second on, planned or seen; the
// other figures always are.
func TestJudged(t *testing.T) {
	for _, name := range []string{Rate, P99, Spent} {
		if !judged(name, 0.1, 0.2) {
			t.Errorf("%s is not judged", name)
		}
	}
	for _, test := range []struct {
		planned, seen float64
		want          bool
	}{{0.39, 0.39, false}, {0, 0, false}, {0.4, 0.1, true}, {0.1, 0.4, true}, {3, 4, true}} {
		if got := judged(Lag, test.planned, test.seen); got != test.want {
			t.Errorf("a wait of %gs that was planned as %gs is judged: %v", test.seen, test.planned, got)
		}
	}
}

// TestCheckedDeployment: the plan is asked for the engine and the ledger that the rehearsal has.
func TestCheckedDeployment(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		args string
		want plan.Question
	}{
		{Config{}, "", plan.Question{Engine: plan.Memory, Ledger: plan.SQLite, Link: time.Microsecond}},
		{Config{Durability: dibs.LevelRelaxed}, "", plan.Question{Engine: plan.Memory, Ledger: plan.SQLite, Link: time.Microsecond}},
		{
			Config{Engine: "redis://a", Shards: 3, Durability: dibs.LevelRelaxed, Data: "d"}, "--engine redis://a --ledger sqlite:d/dibs-plan-602200db5016.db --durability relaxed",
			plan.Question{Engine: plan.Redis, Ledger: plan.SQLite, Durability: dibs.LevelRelaxed, Shards: 3, Link: time.Microsecond},
		},
		{
			Config{Engine: "redis://a", Ledger: "postgres://b", Link: time.Millisecond}, "--engine redis://a --ledger postgres://b",
			plan.Question{Engine: plan.Redis, Ledger: plan.Postgres, Link: time.Millisecond},
		},
	} {
		if got := test.cfg.args(test.cfg.Engine, test.cfg.Ledger); !slices.Equal(got, strings.Fields(test.args)) {
			t.Errorf("the server of %+v is started with %v", test.cfg, got)
		}
		test.want.Users, test.want.Stock, test.want.Wave, test.want.Nodes, test.want.Cores, test.want.ClientsHere = 10, 5, 2, 1, 1.5, true
		if got := test.cfg.question(&rush{requests: 10, wave: 2, stock: 5}, 1.5); got != test.want {
			t.Errorf("the plan of %+v is asked %+v", test.cfg, got)
		}
		if err := test.want.Validate(); err != nil {
			t.Error(err)
		}
	}
}
