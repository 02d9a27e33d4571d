package redisengine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

const (
	// maxBatchUnits is about the most units that one call decides: with format.MaxBatch it
	// bounds how long Redis does nothing else.
	maxBatchUnits = 20_000
	// maxInFlight is how many calls are under way at once to one server, or to a shard of
	// a cluster. The second one waits in Redis while the first is decided; more gain
	// nothing. Each shard has one, however many shards a server has.
	maxInFlight = 2
	// grace is how much longer than a batch's deadline its answer is waited for.
	grace = 250 * time.Millisecond
)

// lane is the way of claims to one shard. Claims that come while calls are under way
// wait in its queue and are sent together.
//
// mu guards the queue and the calls; it is held for no request. Each waiter is in the
// queue, in one call's batch, or answered. At most maxInFlight calls are under way, and
// while the queue is not empty at least one is, so that no waiter is forgotten. A
// lane that is closed or evicted takes no claim: the one is for good, after the other
// the next lane of the shard takes it.
type lane struct {
	*shard

	mu    sync.Mutex
	queue []*waiter
	// since is when the oldest of the queue came, or when the last batch was taken
	// that left some behind.
	since    time.Time
	inFlight int
	// calls are those that are under way, or about to be.
	calls []*batch
	// dropping is set while callers are looked for that wait no longer.
	dropping bool
	// underWay is how many claims are in the calls that are under way.
	underWay int
	closed   bool
	evicted  bool
	idle     chan struct{} // closed when nothing is under way any more, once closed

	// follower knows what the shard refuses every user with.
	follower follower

	// leased is set while this process may have the shard's lease, and loading
	// counts its attempts to open the shard that are under way.
	leased  atomic.Bool
	loading atomic.Int32
}

func newLane(p *process, id dibs.ShardID, keys format.Keys) *lane {
	s := &shard{p: p, id: id, keys: keys}
	return &lane{shard: s, idle: make(chan struct{}), follower: follower{shard: s}}
}

// errEvicted says that the lane was evicted. It never gets out: its caller takes the
// shard's next lane.
var errEvicted = errors.New("redisengine: the lane was evicted")

// errLevelLost says that a claim was not sent, since Redis stopped giving its level
// while it waited. It never gets out: the claim is looked at again.
var errLevelLost = errors.New("redisengine: Redis does not give its level")

var errQueueFull = &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second}

func (l *lane) enqueue(t *waiter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errClosed
	case l.evicted:
		return errEvicted
	case len(l.queue) >= l.p.cfg.Queue:
		return errQueueFull
	}
	if len(l.queue) == 0 {
		l.since = time.Now()
	}
	l.queue = append(l.queue, t)
	if l.inFlight == 0 || l.inFlight < maxInFlight && !l.p.busy(maxInFlight) {
		l.call()
	}
	if !l.dropping {
		l.dropping = true
		time.AfterFunc(dropEvery, l.dropAbandoned)
	}
	return nil
}

// call begins a call; mu is held.
func (l *lane) call() {
	l.inFlight++
	l.p.inFlight.Add(1)
	b := &batch{lane: l}
	l.calls = append(l.calls, b)
	go l.send(b)
}

// waiting is how many claims have not been decided.
func (l *lane) waiting() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.queue) + l.underWay)
}

// send sends batches until nothing waits.
func (l *lane) send(b *batch) {
	for {
		// Let the callers that are ready now join the batch: no timer, and
		// nothing to wait for when there are none.
		runtime.Gosched()
		if !l.take(b) {
			return
		}
		if len(b.waiters) > 0 {
			b.send()
		}
	}
}

// busy reports whether so many calls are under way that one more would only make the
// batches smaller. Of the masters of a cluster each has calls of its own, so that only
// those of the shard count.
func (p *process) busy(calls int64) bool { return p.inFlight.Load() >= calls && !p.redis.IsCluster() }

// take fills a batch; false when nothing waits, or other calls are enough: send ends then.
// A claim that was sent here by another number of shards than the shard
// has is not decided here.
func (l *lane) take(b *batch) bool {
	shards := l.dividedBy()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 || l.inFlight > 1 && l.p.busy(maxInFlight+1) && time.Since(l.since) < dropEvery {
		l.inFlight--
		l.p.inFlight.Add(-1)
		l.calls = slices.DeleteFunc(l.calls, func(other *batch) bool { return other == b })
		if l.closed && l.inFlight == 0 {
			close(l.idle)
		}
		return false
	}
	b.waiters = b.waiters[:0]
	n, units, now, lost := 0, int64(0), time.Now(), l.p.level.lost.Load()
	for n < len(l.queue) && len(b.waiters) < format.MaxBatch && units < maxBatchUnits {
		t := l.queue[n]
		n++
		if t.state.CompareAndSwap(waiting, taken) {
			if lost && !t.req.OnlyRepeat {
				// It came while the level was given, and waited until it was not.
				t.fail(errLevelLost)
				continue
			}
			if strays(&t.req, shards) {
				// The refusal known here may be older than the claim: the next one finds out.
				l.meetAgain()
				t.fail(dibs.ErrStale)
				continue
			}
			b.waiters = append(b.waiters, t)
			units += t.req.Quantity
			if t.born.IsZero() {
				t.born = now
			}
		}
	}
	b.underWay = len(b.waiters)
	l.underWay += b.underWay
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	l.p.stats.Queued.Observe(int64(now.Sub(l.since)))
	l.p.stats.Batches.Observe(int64(b.underWay))
	l.since = now
	return true
}

// done takes a batch's claims off those that are under way, before they are
// answered or put back.
func (l *lane) done(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay -= b.underWay
	b.underWay = 0
}

// again puts claims that are known to have had no effect back to the front.
func (l *lane) again(back []*waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := make([]*waiter, 0, len(back)+len(l.queue))
	for _, t := range back {
		if t.state.CompareAndSwap(taken, waiting) {
			queue = append(queue, t)
		}
	}
	l.queue = append(queue, l.queue...)
}

// end refuses new claims and returns when those that wait are answered.
func (l *lane) end(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if l.inFlight == 0 {
			close(l.idle)
		}
	}
	l.mu.Unlock()
	select {
	case <-l.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dropEvery is how often callers are looked for that wait no longer. They do not
// look themselves: to wait for an answer and for a context at once costs a caller
// more than anything else that a claim does on its node.
const dropEvery = 100 * time.Millisecond

// dropAbandoned ends the waiters of callers that wait no longer, for as long as anyone
// waits. Behind a call that does not come back it begins the second one, whatever the
// other shards of the server have under way.
func (l *lane) dropAbandoned() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.queue {
		t.leave()
	}
	for _, b := range l.calls {
		// Once it is done, its waiters may be those of other claims.
		if b.underWay > 0 {
			for _, t := range b.waiters {
				t.leave()
			}
		}
	}
	if len(l.queue) > 0 && l.inFlight < maxInFlight && time.Since(l.since) >= dropEvery {
		l.call()
	}
	if l.dropping = len(l.queue) > 0 || l.inFlight > 0; l.dropping {
		time.AfterFunc(dropEvery, l.dropAbandoned)
	}
}
