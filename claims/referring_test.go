package claims

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// remembering is a ledger that has the reference of each claim, or cannot be asked.
type remembering struct {
	Ledger
	text string
	err  error
}

func (l *remembering) References(_ context.Context, at []dibs.Position) (map[dibs.Position]string, error) {
	found := map[dibs.Position]string{}
	for _, p := range at {
		found[p] = l.text
	}
	return found, l.err
}

// A repeat is refused when its reference is known to be another one than the first. One
// that cannot be read now takes no yes back.
func TestRepeatsAndTheirReferences(t *testing.T) {
	for name, c := range map[string]struct {
		ledger *remembering
		want   dibs.Reason
		has    string
	}{
		"the same":                {&remembering{text: "basket-7"}, dibs.Granted, "basket-7"},
		"another":                 {&remembering{text: "basket-8"}, dibs.KeyReused, ""},
		"none":                    {&remembering{}, dibs.Granted, ""},
		"one that cannot be read": {&remembering{text: "basket-8", err: errors.New("a cable was pulled")}, dibs.Granted, ""},
	} {
		engine := &failing{}
		s := New(Config{Live: live.New(live.Config{Engine: engine, Ledger: &silent{}, Now: time.Now, Life: t.Context()}), Engine: engine, Ledger: c.ledger})
		first := dibs.Result{Outcome: dibs.Granted, Replayed: true, Claim: &dibs.Claim{Position: dibs.Position{Cursor: dibs.Cursor{Epoch: 1, Seq: 2}}}}
		got := s.refer(t.Context(), &dibs.Campaign{}, "basket-7", first)
		if got.Outcome != c.want || got.Claim != nil && got.Claim.Reference != c.has {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
