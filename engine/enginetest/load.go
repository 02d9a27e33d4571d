package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// userName names the user of a number.
func userName(i int) string { return fmt.Sprintf("user-%d", i) }

// answer is what one claim under load was told: its grant, or err when the claim was
// not answered.
type answer struct {
	user  string
	key   uint64
	grant dibs.Grant
	// err is set when the claim was not answered.
	err error
}

// effectOf returns the effect that an error declares: unknown when it declares none,
// as with a context's error. Unknown is the safe reading: the claim may stand.
func effectOf(err error) dibs.Effect {
	if e, ok := errors.AsType[*dibs.Error](err); ok && e.Effect != "" {
		return e.Effect
	}
	return dibs.EffectUnknown
}

// How a client persists: it repeats after a pause, and gives up on an engine
// that has not decided for so long.
const (
	persistPause = 5 * time.Millisecond
	persistMost  = 30 * time.Second
)

// persist claims until there is a decision, as a client with a key does. An
// error of the effect none, whose repeat finds a grant, fails.
func (o *offer) persist(user string, key uint64, quantity int64) dibs.Decision {
	none := false
	begun := time.Now()
	for {
		d, err := o.eng.Claim(o.ctx, o.request(user, key, quantity))
		if err == nil {
			// none is of the last error alone: an earlier one may have said unknown, and then a
			// repeat may find a grant.
			o.that(!none || !d.Replayed, "the claim of %s was answered with the effect none, and yet stands at %v", user, d.Grant.Position)
			return d
		}
		// Other errors are faults of the engine: a client could not know whether to go on.
		o.is(err, "a claim under load", dibs.ErrUnavailable, dibs.ErrOverloaded)
		o.that(time.Since(begun) < persistMost, "no decision in %v: %v", persistMost, err)
		none = effectOf(err) == dibs.EffectNone
		select {
		case <-time.After(persistPause):
		case <-o.ctx.Done():
		}
	}
}

// load is many clients that claim, each for new users, until they get an error or are
// stopped. Each client writes its own list of answers, so the lists need no lock; they
// are read when all clients have ended.
type load struct {
	o       *offer
	answers [][]answer
	granted atomic.Int64
	ended   atomic.Int64
	// enough is closed when some grants were answered, or all clients ended.
	enough     chan struct{}
	enoughOnce sync.Once
	// stop, when it is closed, ends the clients after their next answer.
	stop chan struct{}
}

// enoughGrants is how many grants are answered before an engine under load is
// ended.
const enoughGrants = 200

func newLoad(o *offer, clients int) *load {
	return &load{o: o, answers: make([][]answer, clients), enough: make(chan struct{}), stop: make(chan struct{})}
}

// during runs f once enough was granted, while the clients claim.
func (l *load) during(ctx context.Context, f func()) {
	eng, clients := l.o.eng, len(l.answers)
	l.o.together(clients+1, func(i int) {
		if i < clients {
			l.client(ctx, eng, i)
			return
		}
		<-l.enough
		f()
	})
}

// client claims until an error or the stop; i is its number. Every claim is of a new
// user with a key, so it has to be granted, and its repeat tells later what became of
// it.
func (l *load) client(ctx context.Context, eng dibs.Engine, i int) {
	defer func() {
		if int(l.ended.Add(1)) == len(l.answers) {
			l.enoughOnce.Do(func() { close(l.enough) })
		}
	}()
	for n := 0; ; n++ {
		a := answer{user: fmt.Sprintf("user-%d-%d", i, n), key: uint64(n) + 1}
		d, err := eng.Claim(ctx, l.o.request(a.user, a.key, 1))
		a.grant, a.err = d.Grant, err
		l.answers[i] = append(l.answers[i], a)
		if err != nil {
			return
		}
		l.o.that(d.Outcome == dibs.Granted && !d.Replayed, "a claim of a new user is %v (replayed: %v)", d.Outcome, d.Replayed)
		if l.granted.Add(1) == enoughGrants {
			l.enoughOnce.Do(func() { close(l.enough) })
		}
		select {
		case <-l.stop:
			return
		default:
		}
	}
}

// kept expects that every yes is found again at its place, that no claim with the
// effect none was granted, and that the rest was granted once or not. The stock has to
// be large enough for every repeat: a claim that was lost is granted by it.
func (l *load) kept() {
	o, granted := l.o, int64(0)
	for _, answers := range l.answers {
		for _, a := range answers {
			granted++
			if a.err == nil {
				o.replay(a.key, a.grant)
				continue
			}
			// The answer was lost: the repeat either finds the grant or makes it now.
			d := o.claim(a.user, a.key, 1)
			o.that(d.Outcome == dibs.Granted, "the repeat of a claim without an answer is %v", d.Outcome)
			o.that(!d.Replayed || effectOf(a.err) == dibs.EffectUnknown, "%s was told %v, and yet has a claim at %v", a.user, a.err, d.Grant.Position)
		}
	}
	// Each user holds exactly one unit now: more were granted twice, fewer were forgotten.
	s := o.stats()
	equal(o.rig, "units granted in the end", s.Granted, granted)
}
