package rehearsal

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sethvargo/go-retry"
	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/api"
)

// How a press without an answer is sent again: with the same key, after a
// pause that grows and varies.
const (
	firstPause  = 50 * time.Millisecond
	longestWait = time.Second
	pauseVaries = 20 // percent
	moreTries   = 8
)

var errUnknownEffect = errors.New("the server answered that the effect is unknown")

// load sends a plan's presses to a server.
type load struct {
	server   server
	plan     *plan
	campaign string
	quantity int64
	// atOnce is how many requests are under way at most; paced says that presses
	// have a time each, instead of a common start for each wave.
	atOnce int
	paced  bool
	tally  *tally
}

// run sends all presses and returns when each has its answer, or when ctx ends.
func (l *load) run(ctx context.Context) error {
	all := len(l.plan.presses)
	if l.paced {
		return l.wave(ctx, 0, all, min(l.atOnce, all))
	}
	for from := 0; from < all; from += l.atOnce {
		to := min(from+l.atOnce, all)
		if err := l.wave(ctx, from, to, to-from); err != nil {
			return err
		}
	}
	return nil
}

// wave sends the presses from..to by a number of callers that start at once.
// With a caller per press, all of them are under way together.
func (l *load) wave(ctx context.Context, from, to, callers int) error {
	var (
		next  atomic.Int64
		start time.Time
		gate  = make(chan struct{})
	)
	next.Store(int64(from))
	// After a failure no press is begun; those that are under way are answered.
	group, going := errgroup.WithContext(ctx)
	for range callers {
		group.Go(func() error {
			<-gate
			for {
				i := int(next.Add(1)) - 1
				if i >= to || going.Err() != nil {
					return nil
				}
				intended := start.Add(l.plan.presses[i].at)
				if early := time.Until(intended); early > 0 && !wait.Sleep(going, early) {
					return nil
				}
				if err := l.press(ctx, i, intended); err != nil {
					return err
				}
			}
		})
	}
	start = time.Now()
	close(gate)
	return errors.Join(group.Wait(), ctx.Err())
}

// press sends press i until it is answered, and counts it.
// Latency counts from the intended time, so that a press which waits for a connection
// is slow and not left out.
func (l *load) press(ctx context.Context, i int, intended time.Time) error {
	p := l.plan.presses[i]
	req := l.plan.claim(l.campaign, l.quantity, p)
	a, lost := l.ask(ctx, req)
	if ctx.Err() != nil && a.reason == "" {
		l.tally.cut(i)
		return nil
	}
	f := fateOf(&a)
	if a.reason == "" {
		f = unanswered
	}
	if lost > 0 && f != unanswered {
		l.tally.saved.Add(1)
	}
	if f == yes {
		l.fits(&req, &a.claim)
	}
	l.tally.count(f)
	return l.tally.record(i, p, &a, f, time.Since(intended))
}

// askAgain sends the presses once more whose effect is unknown when the load is over:
// a server that was away during the load may be back.
func (l *load) askAgain(ctx context.Context, s server, progress progress) {
	var open []int
	for i, f := range l.tally.fates {
		if f == unanswered {
			open = append(open, i)
		}
	}
	// A verdict tells of claims that are still open; there is no other error.
	_, _ = each(ctx, progress, "asking again", open, func(ctx context.Context, i *int) error {
		p := l.plan.presses[*i]
		req := l.plan.claim(l.campaign, l.quantity, p)
		a, err := s.claim(ctx, req)
		if err != nil || a.again {
			return nil
		}
		f := fateOf(&a)
		if f == yes {
			l.fits(&req, &a.claim)
		}
		l.tally.settle(*i, p, &a, f)
		return nil
	})
}

// ask sends a request until it is answered and its effect known: a few times at
// most, besides those at which the server has no time to look. A request without
// a key is sent once: twice would be two requests. The second result counts the
// attempts whose effect stayed unknown.
// A lost answer is not repeated blindly: the key makes the server find the first
// attempt. An attempt after a lost one may be refused by the limit or the load, which says
// nothing about the first.
func (l *load) ask(ctx context.Context, req dibs.ClaimRequest) (answer, int) {
	var last answer
	lost, more := 0, moreTries
	err := retry.Do(ctx, pauses(), func(ctx context.Context) error {
		a, err := l.server.claim(ctx, req)
		busy := err == nil && a.reason == dibs.Overloaded.String()
		if err == nil && lost > 0 && a.reason == dibs.RateLimited.String() {
			// A limit of the server does not look what the attempts before came to.
			a.effect = dibs.EffectUnknown
		}
		if busy && lost == 0 {
			// This attempt was not decided, and it is the only one.
			a.effect = dibs.EffectNone
		}
		if err == nil {
			if last = a; a.effect != dibs.EffectUnknown {
				return nil
			}
			err = errUnknownEffect
		}
		if ctx.Err() != nil {
			return err
		}
		lost++
		l.tally.loseOne(err)
		if !busy {
			more--
		}
		if req.Key == "" || more < 0 {
			return err
		}
		return retry.RetryableError(err)
	})
	if err != nil && !errors.Is(err, errUnknownEffect) {
		return answer{}, lost
	}
	return last, lost
}

// fits notes a granted claim that is not what was asked for.
func (l *load) fits(req *dibs.ClaimRequest, c *api.ClaimView) {
	if c.UserID != req.UserID || c.CampaignID != req.CampaignID || c.Quantity != req.Quantity {
		l.tally.misfits.add("%s asked for %d of %s and was answered with claim %s of %s for %d of %s",
			"%s 请求 %d 件（活动 %s），得到的领取记录 %s 属于 %s，共 %d 件（活动 %s）",
			req.UserID, req.Quantity, req.CampaignID, c.ID, c.UserID, c.Quantity, c.CampaignID)
	}
}
