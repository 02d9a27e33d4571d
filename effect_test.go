package dibs

import (
	"context"
	"errors"
	"testing"
	"time"
)

// failing is an engine that cannot decide, for a reason.
type failing struct {
	Engine
	err    error
	shared bool
}

func (e *failing) Claim(context.Context, EngineClaim) (Decision, error) { return Decision{}, e.err }
func (e *failing) Shared() bool                                         { return e.shared }

// noRoom is a guard that lets nobody in.
type noRoom struct{}

func (noRoom) Enter() (int64, bool) { return 0, false }
func (noRoom) Leave(int64)          {}

// silent is a ledger that cannot be asked.
type silent struct {
	Ledger
	err error
}

func (l *silent) Campaign(context.Context, string) (*Campaign, error) { return nil, l.err }

func (l *silent) Order(context.Context, Order) (OrderResult, error) { return OrderResult{}, l.err }

// A claim that was refused before anybody looked its key up may be the repeat of one
// that was granted: only without a key is it sure that nothing was granted. An
// engine of one process has looked.
func TestEffectsOfClaimsNotDecided(t *testing.T) {
	full := &Error{Reason: Overloaded, Effect: EffectNone, RetryAfter: time.Second}
	cause := errors.New("a cable was pulled")
	cases := map[string]struct {
		engine *failing
		guard  Guard
		// live says that the engine has the campaign.
		live   bool
		ledger error
		// keyed is the effect of a claim with a key; none without one.
		keyed Effect
	}{
		"shed":                                 {guard: noRoom{}, live: true, keyed: EffectUnknown},
		"a full queue on the way to a shared":  {engine: &failing{err: full, shared: true}, live: true, keyed: EffectUnknown},
		"a shared engine that is not there":    {engine: &failing{err: Unavail(EffectNone, cause), shared: true}, live: true, keyed: EffectUnknown},
		"a full queue of the process's own":    {engine: &failing{err: full}, live: true, keyed: EffectNone},
		"not live, with a ledger that is away": {ledger: cause, keyed: EffectUnknown},
		"not live, with a ledger that is busy": {ledger: Unavail(EffectNone, cause), keyed: EffectUnknown},
	}
	for name, c := range cases {
		s := lookupService(t, &silent{err: c.ledger})
		s.cfg.Guard = c.guard
		s.engine = c.engine
		if c.live {
			l := &live{}
			l.campaign.Store(&Campaign{ID: "phone", Shards: 1, State: Published})
			s.lives.Store("phone", l)
		}
		for key, want := range map[string]Effect{"": EffectNone, "press-1": c.keyed} {
			_, err := s.Claim(t.Context(), ClaimRequest{CampaignID: "phone", UserID: "ann", Key: key})
			var e *Error
			if !errors.As(err, &e) || e.Effect != want || e.RetryAfter <= 0 {
				t.Errorf("%s, with the key %q: %+v, want the effect %s", name, key, e, want)
			}
		}
	}
	if full.Effect != EffectNone {
		t.Error("the engine's own error was changed")
	}
}

// An order that the ledger did not take is told as a claim is.
func TestEffectsOfOrdersNotDecided(t *testing.T) {
	s := lookupService(t, &silent{err: Unavail(EffectNone, errors.New("too many at once"))})
	s.orders = make(chan struct{}, maxOrders)
	for key, want := range map[string]Effect{"": EffectNone, "press-1": EffectUnknown} {
		_, err := s.Order(t.Context(), OrderRequest{ProductID: "tea", UserID: "ann", Key: key})
		if e := (*Error)(nil); !errors.As(err, &e) || e.Effect != want {
			t.Errorf("with the key %q: %+v, want the effect %s", key, e, want)
		}
	}
}

// What is refused at the door costs no memory.
func TestShedAllocatesNothing(t *testing.T) {
	var last *Error
	if n := testing.AllocsPerRun(100, func() { last = Shed(last == nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
