package redisengine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// maxBatch is the most claims, and maxBatchUnits about the most units, that
	// one call decides: it bounds how long Redis does nothing else.
	maxBatch      = 1024
	maxBatchUnits = 20_000
	// maxFlying is how many calls of a shard are under way at once. The second
	// one waits in Redis while the first is decided; more gain nothing.
	maxFlying = 2
	// grace is how much longer than a batch's deadline its answer is waited for.
	grace = 250 * time.Millisecond
)

// lane is the way to one shard. Claims that come while calls are under way
// gather in it and are sent together.
type lane struct {
	e    *Engine
	id   dibs.ShardID
	keys keys

	mu    sync.Mutex
	queue []*ticket
	// since is when the oldest of the queue came, or when the last batch was taken
	// that left some behind.
	since  time.Time
	flying int
	// calls are those that are under way, or about to be.
	calls []*batch
	// minding is set while callers are looked for that wait no longer.
	minding bool
	// aboard is how many claims are in the calls that are under way.
	aboard int
	closed bool
	// dropped is set once the engine has let go of the lane: another one takes
	// its shard's claims.
	dropped bool
	idle    chan struct{} // closed when nothing flies any more, once closed

	// follower knows what the shard refuses everybody with.
	follower follower

	// leased is set while this process may have the shard's lease, and loading
	// counts its attempts to open the shard that are under way.
	leased  atomic.Bool
	loading atomic.Int32

	// known guards what answers have told of the shard.
	known sync.Mutex
	seen  dibs.Cursor
	// ahead is how much Redis' clock is ahead of the local one, in ms.
	ahead int64
	// buckets is over how many buckets users are spread; 0 while not known.
	buckets int64
	// met is set once Redis has told its clock and the buckets.
	met bool
	// goneMS is the local time at which Redis said that it does not hold the shard,
	// and has not said otherwise since; 0 when it holds it.
	goneMS int64
}

func newLane(e *Engine, id dibs.ShardID) *lane {
	return &lane{e: e, id: id, keys: keysOf(id), idle: make(chan struct{})}
}

// errLevelLost says that a claim was not sent, since Redis stopped giving its level
// while it waited. It never gets out: the claim is looked at again.
var errLevelLost = errors.New("redisengine: Redis does not give its level")

var errQueueFull = &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second}

// Claim decides one claim; see dibs.Engine.
func (e *Engine) Claim(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	l, err := e.lane(req.Shard)
	if err != nil {
		return dibs.Decision{}, err
	}
	if err := encodable(&req); err != nil {
		return dibs.Decision{}, err
	}
	if outcome, ok := l.refuses(&req); ok {
		return dibs.Decision{Outcome: outcome}, nil
	}
	lost := e.level.lost.Load() && !req.OnlyRepeat
	if lost {
		if req.Key == 0 {
			return dibs.Decision{Outcome: dibs.Unavailable}, nil
		}
		// Nothing is granted, but a yes that was given is found.
		req.OnlyRepeat = true
	}
	if err := ctx.Err(); err != nil {
		return dibs.Decision{}, dibs.Unavail(dibs.EffectNone, err)
	}
	t := newTicket(ctx, &req)
	err = l.enqueue(t)
	for errors.Is(err, errDropped) {
		if l, err = e.lane(req.Shard); err == nil {
			err = l.enqueue(t)
		}
	}
	if err != nil {
		t.free()
		return dibs.Decision{}, err
	}
	<-t.done
	d, err := t.decision()
	t.free()
	if errors.Is(err, errLevelLost) {
		return e.Claim(ctx, req)
	}
	if lost && d.Outcome == dibs.Overloaded {
		d.Outcome = dibs.Unavailable
	}
	return d, err
}

func (l *lane) enqueue(t *ticket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errClosed
	case l.dropped:
		return errDropped
	case len(l.queue) >= l.e.cfg.Queue:
		return errQueueFull
	}
	if len(l.queue) == 0 {
		l.since = time.Now()
	}
	l.queue = append(l.queue, t)
	if l.flying < maxFlying {
		l.flying++
		b := &batch{lane: l}
		l.calls = append(l.calls, b)
		go l.fly(b)
	}
	if !l.minding {
		l.minding = true
		time.AfterFunc(mindEvery, l.mind)
	}
	return nil
}

// waiting is how many claims have not been decided.
func (l *lane) waiting() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.queue) + l.aboard)
}

// fly sends batches until nothing waits.
func (l *lane) fly(b *batch) {
	for {
		// Let the callers that are ready now join the batch: no timer, and
		// nothing to wait for when there are none.
		runtime.Gosched()
		if !l.take(b) {
			return
		}
		if len(b.tickets) > 0 {
			b.send()
		}
	}
}

// take fills a batch; false when nothing waits and this flight is over.
func (l *lane) take(b *batch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.flying--
		l.calls = slices.DeleteFunc(l.calls, func(other *batch) bool { return other == b })
		if l.closed && l.flying == 0 {
			close(l.idle)
		}
		return false
	}
	b.tickets = b.tickets[:0]
	n, units, now, lost := 0, int64(0), time.Now(), l.e.level.lost.Load()
	for n < len(l.queue) && len(b.tickets) < maxBatch && units < maxBatchUnits {
		t := l.queue[n]
		n++
		if t.state.CompareAndSwap(waiting, taken) {
			if lost && !t.req.OnlyRepeat {
				// It came while the level was given, and waited until it was not.
				t.fail(errLevelLost)
				continue
			}
			b.tickets = append(b.tickets, t)
			units += t.req.Quantity
			if t.born.IsZero() {
				t.born = now
			}
		}
	}
	b.aboard = len(b.tickets)
	l.aboard += b.aboard
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	l.e.work.Queued.Observe(int64(now.Sub(l.since)))
	l.e.work.Batches.Observe(int64(b.aboard))
	l.since = now
	return true
}

// land takes a batch's claims off those that are under way, before they are
// answered or put back.
func (l *lane) land(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aboard -= b.aboard
	b.aboard = 0
}

// again puts claims that are known to have had no effect back to the front.
func (l *lane) again(back []*ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := make([]*ticket, 0, len(back)+len(l.queue))
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
		if l.flying == 0 {
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

// result is the common head of every script's answer.
type result struct {
	word  string
	nowMS int64
	at    dibs.Cursor
	rest  []reply
}

var errShape = errors.New("redisengine: a script answered in another shape than it should")

// run runs a script of the shard that takes the highest place seen, and learns
// from its answer.
func (l *lane) run(ctx context.Context, s *script, keys []string, args ...string) (result, error) {
	l.known.Lock()
	seen := l.seen
	l.known.Unlock()
	args = append([]string{strconv.Itoa(int(seen.Epoch)), strconv.FormatUint(uint64(seen.Seq), 10)}, args...)
	r, err := l.e.redis.run(ctx, s, keys, args...)
	if err != nil {
		return result{}, err
	}
	res, err := resultOf(&r)
	if err != nil {
		return result{}, err
	}
	if res.word == "behind" {
		if err := l.expel(ctx, seen); err != nil {
			l.e.log.Warn("a shard that has forked is not shut", "shard", l.id.String(), "err", err)
		} else {
			res.word = "not_open"
		}
	}
	l.known.Lock()
	defer l.known.Unlock()
	l.ahead = res.nowMS - l.e.localMS()
	l.noteGone(res.word == "absent")
	if res.word == "ok" && l.seen.Before(res.at) {
		l.seen = res.at
	}
	return res, nil
}

// expel takes the shard out, for all processes, when Redis is behind what this
// one has seen: only this one can tell. The shard is not open then, until it
// was compared with the ledger.
func (l *lane) expel(ctx context.Context, seen dibs.Cursor) error {
	l.e.log.Error("Redis has lost history of a shard, which is shut until it is loaded again",
		"shard", l.id.String(), "seen", seen.String())
	r, err := l.e.redis.run(ctx, expelScript, []string{l.keys.meta, l.keys.state}, itoa(seen.Epoch), itoa(seen.Seq))
	if err != nil {
		return err
	}
	res, err := resultOf(&r)
	if err != nil {
		return err
	}
	return refusal(&res)
}

func resultOf(r *reply) (result, error) {
	if len(r.list) < 4 {
		return result{}, errShape
	}
	return result{
		word: r.list[0].text, nowMS: r.list[1].number, rest: r.list[4:],
		at: dibs.Cursor{Epoch: uint16(r.list[2].number), Seq: uint32(r.list[3].number)},
	}, nil
}

// advance notes a place that the shard has reached.
func (l *lane) advance(c dibs.Cursor) {
	l.known.Lock()
	defer l.known.Unlock()
	if l.seen.Before(c) {
		l.seen = c
	}
}

// respread notes over how many buckets users are spread.
func (l *lane) respread(buckets int64) {
	l.known.Lock()
	defer l.known.Unlock()
	l.buckets = buckets
}

// localMS is a clock that no one sets, in ms.
func (e *Engine) localMS() int64 { return time.Since(e.since).Milliseconds() }
