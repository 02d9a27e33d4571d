package claims

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// failing is an engine that cannot decide, for a reason.
type failing struct {
	dibs.Engine
	err    error
	shared bool
}

func (e *failing) Claim(context.Context, dibs.EngineClaim) (dibs.Decision, error) {
	return dibs.Decision{}, e.err
}
func (e *failing) Shared() bool { return e.shared }

// noRoom is a guard that lets nobody in.
type noRoom struct{}

func (noRoom) Enter() (int64, bool) { return 0, false }
func (noRoom) Leave(int64)          {}

// silent is a ledger that cannot be asked.
type silent struct {
	live.Ledger
	err error
}

func (l *silent) Campaign(context.Context, string) (*dibs.Campaign, error) { return nil, l.err }

// A claim that was refused before anybody looked its key up may be the repeat of one
// that was granted: only without a key is it sure that nothing was granted. An
// engine of one process has looked.
func TestEffectsOfClaimsNotDecided(t *testing.T) {
	full := &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second}
	cause := errors.New("a cable was pulled")
	cases := map[string]struct {
		engine *failing
		guard  Guard
		// live says that the engine has the campaign.
		live   bool
		ledger error
		// keyed is the effect of a claim with a key; none without one.
		keyed dibs.Effect
	}{
		"shed":                                 {guard: noRoom{}, live: true, keyed: dibs.EffectUnknown},
		"a full queue on the way to a shared":  {engine: &failing{err: full, shared: true}, live: true, keyed: dibs.EffectUnknown},
		"a shared engine that is not there":    {engine: &failing{err: dibs.Unavail(dibs.EffectNone, cause), shared: true}, live: true, keyed: dibs.EffectUnknown},
		"a full queue of the process's own":    {engine: &failing{err: full}, live: true, keyed: dibs.EffectNone},
		"not live, with a ledger that is away": {ledger: cause, keyed: dibs.EffectUnknown},
		"not live, with a ledger that is busy": {ledger: dibs.Unavail(dibs.EffectNone, cause), keyed: dibs.EffectUnknown},
	}
	for name, c := range cases {
		node := live.New(live.Config{Engine: c.engine, Ledger: &silent{err: c.ledger}, Now: time.Now, Life: t.Context()})
		s := New(Config{Live: node, Engine: c.engine, Guard: c.guard})
		if c.live {
			phone := &dibs.Campaign{ID: "phone", Shards: 1, State: dibs.Published}
			node.Registry.Put(phone, live.NewCampaign(phone))
		}
		for key, want := range map[string]dibs.Effect{"": dibs.EffectNone, "press-1": c.keyed} {
			_, err := s.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "ann", Key: key})
			var e *dibs.Error
			if !errors.As(err, &e) || e.Effect != want || e.RetryAfter <= 0 {
				t.Errorf("%s, with the key %q: %+v, want the effect %s", name, key, e, want)
			}
		}
	}
	if full.Effect != dibs.EffectNone {
		t.Error("the engine's own error was changed")
	}
}

// A claim that is refused at the door costs no memory.
func TestShedAllocatesNothing(t *testing.T) {
	var last *dibs.Error
	if n := testing.AllocsPerRun(100, func() { last = dibs.Shed(last == nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
