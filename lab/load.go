package lab

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs/lab/strategies"
)

// grace is how long presses that are under way may take after the time is over. Cutting them off at
// once would leave orders whose callers have no answer, which compare would not know.
const grace = 20 * time.Second

// presses is the load of one run, and what was answered. cfg and users do not change once callers
// run. Callers write concurrently: each press writes its own element of took, and counts, errs,
// failed, yes and lastYes are safe for concurrent use. begun is written before the callers start,
// elapsed and stopped after they ended: nobody reads the results before send returns.
type presses struct {
	cfg    *Config
	users  []string
	counts [strategies.Busy + 1]atomic.Int64
	errs   atomic.Int64
	failed atomic.Pointer[error]
	took   []time.Duration
	yes    sync.Map
	// lastYes is when the last one was told, from the begin.
	begun   time.Time
	lastYes atomic.Int64
	elapsed time.Duration
	// stopped is set when the time was over before all were answered.
	stopped bool
}

// newPresses orders the users at random, by the seed, and lets each press as often as the others, one
// press right after the other: as people do who get no answer. So the presses of one user are often
// under way at once, which is what finds a second order.
func newPresses(cfg *Config) *presses {
	p := &presses{cfg: cfg, users: make([]string, cfg.Requests)}
	order := rand.New(rand.NewPCG(cfg.Seed, 0)).Perm(cfg.Users)
	for i := range p.users {
		p.users[i] = strconv.Itoa(10_000_000 + order[int(int64(i)*int64(cfg.Users)/int64(cfg.Requests))])
	}
	return p
}

// send lets so many callers press, each one at a time, until all was sent or over is closed. Callers
// wait at a gate until all of them exist: started one by one, the first would sell out before the
// last begins, and there would be no rush.
func (p *presses) send(ctx context.Context, a strategies.Attempt, callers int, over <-chan struct{}) {
	p.took = make([]time.Duration, len(p.users))
	var next atomic.Int64
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for range callers {
		wg.Go(func() {
			<-gate
			for {
				// The presses are sent in their order, whoever sends them.
				i := int(next.Add(1)) - 1
				if i >= len(p.users) {
					return
				}
				select {
				case <-over:
					return
				default:
				}
				p.press(ctx, a, i)
			}
		})
	}
	p.begun = time.Now()
	close(gate)
	wg.Wait()
	p.elapsed = time.Since(p.begun)
	select {
	case <-over:
		p.stopped = true
	default:
	}
}

// press makes one claim and counts its answer. An error is no answer: it is counted apart and its time
// is not measured, since a strategy that fails fast must not look fast.
func (p *presses) press(ctx context.Context, a strategies.Attempt, i int) {
	begun := time.Now()
	out, err := a.Claim(ctx, p.users[i])
	if err != nil {
		p.errs.Add(1)
		p.failed.CompareAndSwap(nil, &err)
		return
	}
	// At least 1, since 0 stands for a press without an answer.
	p.took[i] = max(time.Since(begun), 1)
	p.counts[out].Add(1)
	if out == strategies.Granted {
		// Callers that finish at once may write it in any order, by microseconds.
		p.lastYes.Store(int64(time.Since(p.begun)))
		n, _ := p.yes.LoadOrStore(p.users[i], new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}
}

// quantiles returns percentiles of the answers, in milliseconds, and zeros without any. It leaves out
// what was not answered: a slow strategy that was stopped looks faster here than it is.
func (p *presses) quantiles() (p50, p90, p99 float64) {
	// This changes p.took: the percentiles are taken once, after the load.
	took := slices.DeleteFunc(p.took, func(d time.Duration) bool { return d == 0 })
	if len(took) == 0 {
		return 0, 0, 0
	}
	slices.Sort(took)
	at := func(q float64) float64 {
		return float64(took[min(int(q*float64(len(took))), len(took)-1)].Microseconds()) / 1000
	}
	return at(0.5), at(0.9), at(0.99)
}

// compare counts what is wrong between answers and orders, where orders is how many each user has.
// Orders above the stock are oversold; a user's second order is a duplicate where one may have one;
// a yes without an order is unkept. An order without a yes is none of these: its caller may have had
// an error. Undersold depends on the demand: users who want one each, or all presses. It is
// unknown after a stop, when not everybody had pressed.
func (p *presses) compare(r *Result, orders map[string]int64, perUser bool) {
	var duplicates int64
	for _, n := range orders {
		r.Orders += n
		duplicates += n - 1
	}
	if perUser {
		r.Duplicates = &duplicates
	}
	r.Oversold = max(0, r.Orders-p.cfg.Stock)
	p.yes.Range(func(user, n any) bool {
		r.Unkept += max(0, n.(*atomic.Int64).Load()-orders[user.(string)])
		return true
	})
	if r.Stopped {
		return
	}
	demand := int64(p.cfg.Requests)
	if perUser {
		demand = int64(p.cfg.Users)
	}
	undersold := max(0, min(p.cfg.Stock, demand)-r.Orders)
	r.Undersold = &undersold
}
