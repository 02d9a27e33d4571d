package plan

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestSettlerRests leaves the processors to the claims of a rush: with claims enough at
// once, settling begins when the rush is over, or after two seconds.
func TestSettlerRests(t *testing.T) {
	short := ask(t, Question{Users: 60_000, Stock: 60_000, Over: time.Second, Cores: 16})
	if short.Lag.Most < 50_000 || short.Lag.Worst > 1.5 {
		t.Errorf("in a rush of a second %+v", short.Lag)
	}
	long := ask(t, Question{Users: 360_000, Stock: 360_000, Over: 6 * time.Second, Cores: 16})
	if long.Lag.Worst < firstRest || long.Lag.Most > 300_000 {
		t.Errorf("in a rush of six seconds %+v", long.Lag)
	}
}

// TestSettlerWaitsForCompany settles what trickles in a tenth of a second later, and at
// once when answers wait for the ledger.
func TestSettlerWaitsForCompany(t *testing.T) {
	q := Question{Users: 100, Stock: 100, Over: 10 * time.Second}
	if a := ask(t, q); a.Lag.Worst < settleEvery || a.Lag.Worst > 2*settleEvery {
		t.Errorf("a lone grant waits for %g s", a.Lag.Worst)
	}
	q.Durability = dibs.LevelLedgered
	if a := ask(t, q); a.Lag.Worst > settleEvery/2 {
		t.Errorf("a grant that is waited for waits for %g s", a.Lag.Worst)
	}
}
