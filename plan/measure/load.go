package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// rush is a load of dibs rehearse: requests of as many users, sent in waves.
type rush struct {
	requests, wave int
	stock          int64
	// follow asks the server for its lag during the load.
	follow bool
	// shards is how many the campaign has; 0 is one.
	shards int
}

// seen is what a rush showed.
type seen struct {
	rush   rush
	report *rehearsal.Report
	// before and after are the server's counts around the load, and drained when
	// everything was settled. clientBefore and clientAfter are processor time.
	before, after, drained    counts
	clientBefore, clientAfter time.Duration
	// settling is the processor time of the server for settling what was left after
	// the load, in seconds, and left how many grants that were.
	settling, left float64
	// lag is the longest that the oldest entry was seen to wait, in seconds.
	lag float64
}

// mostLost is the share of the requests that may have to be sent again: a server closes
// connections that a slow client has opened and does not use.
const mostLost = 0.05

// drainTime bounds how long everything may take to be settled.
const drainTime = 5 * time.Minute

// drainLook is how often the server is asked whether everything is settled.
const drainLook = 250 * time.Millisecond

// run loads a server. It looks at the server right before the load and right after it,
// and holds the rehearsal back until everything is settled.
func (r rush) run(ctx context.Context, s *server) (*seen, error) {
	x := &seen{rush: r}
	var failed error
	note := func(err error) { failed = cmp.Or(failed, err) }
	ended := false
	cfg := rehearsal.Config{
		URL: s.url, AdminKey: s.adminKey, JWTSecret: s.secret, Users: r.requests, Requests: r.requests, Concurrency: r.wave, Stock: r.stock, Shards: r.shards,
		Repeats: -1, Seed: 1, MaxTime: time.Hour, Timeout: time.Minute,
		On: func(e rehearsal.Event) {
			if e.Done != e.Total || e.Total == 0 || ended {
				return
			}
			switch e.Phase {
			case "connecting":
				note(x.look(ctx, s, &x.before, &x.clientBefore))
			case "pressing":
				ended = true
				note(x.look(ctx, s, &x.after, &x.clientAfter))
				if r.stock >= lone {
					// A single grant may wait for company: it does not matter.
					note(x.drain(ctx, s))
				}
			}
		},
	}
	stop := func() error { return nil }
	if r.follow {
		stop = x.follow(ctx, s)
	}
	var err error
	x.report, err = rehearsal.Run(ctx, cfg)
	if err := errors.Join(err, stop(), failed); err != nil {
		return nil, err
	}
	if !ended || x.before.at.IsZero() {
		return nil, errors.New("the load was not seen from its beginning to its end")
	}
	if lost := x.report.Transport; float64(lost.Lost) > mostLost*float64(r.requests) || lost.Unresolved > 0 {
		return nil, &unansweredError{lost}
	}
	return x, nil
}

// unansweredError says that too many requests of a load got no answer at first.
type unansweredError struct{ rehearsal.Transport }

func (e *unansweredError) Error() string {
	return fmt.Sprintf("%d attempts got no answer at first, and %d requests none at all: %s", e.Lost, e.Unresolved, e.Example)
}

// leastWave is the smallest wave that stands for a rush.
const leastWave = 100

// bearable runs a load, with half as many connections again and again while this machine
// does not use them in time. It returns what the last run showed.
func (r rush) bearable(run func(rush) (*seen, error), say func(format string, args ...any)) (*seen, error) {
	for {
		x, err := run(r)
		if slow := (*unansweredError)(nil); !errors.As(err, &slow) || r.wave/2 < leastWave {
			return x, err
		}
		if r.requests == r.wave {
			r.requests /= 2
		}
		r.wave /= 2
		say("warning: %s; once more with %d connections", err, r.wave)
	}
}

// lagLook is how often the server is asked for its lag during a load: often enough to tell two
// fifths of a second, and seldom enough for the answers to take little of the processor.
const lagLook = 50 * time.Millisecond

// follow notes the server's lag until the returned function is called.
func (x *seen) follow(ctx context.Context, s *server) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		for wait.Sleep(ctx, lagLook) {
			c, err := s.look(ctx)
			if err != nil && ctx.Err() == nil {
				done <- err
				return
			}
			x.lag = max(x.lag, c.lag)
		}
		done <- nil
	}()
	return func() error {
		cancel()
		return <-done
	}
}

func (x *seen) look(ctx context.Context, s *server, c *counts, own *time.Duration) (err error) {
	*own, _ = ownCPU()
	*c, err = s.look(ctx)
	return err
}

// drain waits until the server has settled everything. It tells the processor time of
// settling from what the server needs anyway, and for being asked.
func (x *seen) drain(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	x.left = x.after.granted - x.before.granted - (x.after.settled - x.before.settled)
	last, idle, idleFor, busyFor := x.after, 0.0, 0.0, 0.0
	for {
		if last.backlog == 0 && last.settled-x.before.settled >= last.granted-x.before.granted {
			break
		}
		if !wait.Sleep(ctx, drainLook) {
			return fmt.Errorf("after %s, %g grants wait to be settled", drainTime, last.backlog)
		}
		next, err := s.look(ctx)
		if err != nil {
			return err
		}
		took, used := next.at.Sub(last.at).Seconds(), next.cpu-last.cpu
		if next.settled == last.settled {
			idle, idleFor = idle+used, idleFor+took
		} else {
			x.settling, busyFor = x.settling+used, busyFor+took
		}
		last = next
	}
	if idleFor > 0 {
		x.settling = max(0, x.settling-idle/idleFor*busyFor)
	}
	x.drained = last
	return nil
}

// took is how long the load was.
func (x *seen) took() float64 { return x.report.LoadMS / 1000 }

// p99 is how long the slowest hundredth of the requests waited at least, in milliseconds.
func (x *seen) p99() float64 {
	for _, l := range x.report.Latencies {
		if l.Of == "all" {
			return l.P99
		}
	}
	return 0
}

// spentUS is the processor time of client and server for each request until all was settled.
func (x *seen) spentUS() float64 {
	return x.clientUS() + (x.drained.cpu-x.before.cpu)*1e6/float64(x.rush.requests)
}

// clientUS and serverUS are the processor time for each request of the load itself.
func (x *seen) clientUS() float64 {
	return (x.clientAfter - x.clientBefore).Seconds() * 1e6 / float64(x.rush.requests)
}

func (x *seen) serverUS() float64 {
	return (x.after.cpu - x.before.cpu) * 1e6 / float64(x.rush.requests)
}

// redisUS is the processor time of Redis for each request.
func (x *seen) redisUS() float64 {
	return (x.after.redis - x.before.redis) * 1e6 / float64(x.rush.requests)
}

// cores is how many cores client and server together got during the load.
func (x *seen) cores() float64 {
	return ((x.clientAfter - x.clientBefore).Seconds() + x.after.cpu - x.before.cpu) / x.took()
}

// stepUS is how long a step that makes claims durable took on average.
func (x *seen) stepUS() float64 { return (x.after.stepsIn - x.before.stepsIn) * 1e6 / x.steps() }

// stepClaims is how many claims a step had on average.
func (x *seen) stepClaims() float64 { return (x.after.stepClaims - x.before.stepClaims) / x.steps() }

func (x *seen) steps() float64 { return max(1, x.after.steps-x.before.steps) }

// transactions is how many transactions settled the load, and transactionUS how long one took
// on average.
func (x *seen) transactions() float64 { return x.drained.transactions - x.before.transactions }

func (x *seen) transactionUS() float64 {
	return (x.drained.transactionsIn - x.before.transactionsIn) * 1e6 / max(x.transactions(), 1)
}

// settlingUS is the processor time of the server for each grant that was settled after the load.
func (x *seen) settlingUS() float64 {
	if x.left == 0 {
		return 0
	}
	return x.settling * 1e6 / x.left
}

// loads are what the rounds of one load showed.
type loads []*seen

// middle returns the median of a figure.
func (l loads) middle(figure func(*seen) float64) float64 {
	values := l.sorted(figure)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func (l loads) sorted(figure func(*seen) float64) (values []float64) {
	for _, x := range l {
		values = append(values, figure(x))
	}
	slices.Sort(values)
	return values
}
