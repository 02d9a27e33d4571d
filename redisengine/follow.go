package redisengine

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
)

const (
	// followTime is how long what is refused here holds without being read again,
	// and renewAfter when it is, while it is used.
	followTime = time.Second
	renewAfter = 400 * time.Millisecond
	// followPause is the shortest time between two readings.
	followPause = 10 * time.Millisecond
	// followIdle is how long a follower that nobody needs stays.
	followIdle = 30 * time.Second
	// clockMargin is added to the measured error of Redis' clock, in ms.
	clockMargin = 5
)

// refusing is what a shard refuses everybody with who has no claim: state,
// window, and stock. It is never changed.
type refusing struct {
	closed       int64
	starts, ends int64
	empty        bool
	// limitFirst is 1 when who holds as much as he may hears that before he hears
	// that all is gone.
	limitFirst int64
	// low and high bound by how much Redis' clock is ahead of the local one, and
	// until is the local time up to which this holds, all in ms.
	low, high, until int64
	// holders is nil when there are too many to remember.
	holders *holders
}

// outcome is what everybody hears who has no claim; false when that cannot be
// told here.
func (r *refusing) outcome(localMS int64) (dibs.Reason, bool) {
	early, late := localMS+r.low, localMS+r.high
	switch {
	case localMS >= r.until:
		return 0, false
	case r.closed == isPaused:
		return dibs.Paused, true
	case r.closed == isEnded || early >= r.ends:
		return dibs.Ended, true
	case late < r.starts:
		return dibs.NotStarted, true
	case r.empty && early >= r.starts && late < r.ends:
		return dibs.SoldOut, true
	}
	return 0, false
}

// follower keeps a lane's refusing while it is true.
type follower struct {
	refusing atomic.Pointer[refusing]
	// used is set when something was refused since the last reading.
	used atomic.Bool

	mu sync.Mutex
	// lifts counts what was heard of changes: what was read before the last of
	// them is not refused with.
	lifts uint64
	// wake is the running follower's; nil while there is none.
	wake chan struct{}
}

// refuses answers a claim here when that is what Redis would say: nobody
// without a claim gets one, and this is no repeat, since it has no key or its
// user surely has no claim. It takes no lock and no memory.
func (l *lane) refuses(req *dibs.EngineClaim) (dibs.Reason, bool) {
	r := l.follower.refusing.Load()
	if r == nil || req.Late {
		return 0, false
	}
	outcome, ok := r.outcome(l.e.localMS())
	// A holder's repeat is for Redis, and so is his limit where it comes first, or
	// anybody's who asks for more than one.
	asks := req.Key != 0 || outcome == dibs.SoldOut && r.limitFirst == 1
	if outcome == dibs.SoldOut && r.limitFirst == 1 && req.Quantity > 1 {
		return 0, false
	}
	if !ok || asks && (r.holders == nil || r.holders.may(req.UserID)) {
		return 0, false
	}
	if !l.follower.used.Load() {
		l.follower.used.Store(true)
	}
	if req.OnlyRepeat {
		return dibs.Overloaded, true
	}
	return outcome, true
}

// lift ends all refusing until the shard was read again.
func (l *lane) lift() {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lifts++
	f.refusing.Store(nil)
}

// invalidated hears from Redis which keys have changed; nil stands for all,
// after a lost connection or a flush.
func (e *Engine) invalidated(changed []rueidis.RedisMessage) {
	if changed == nil {
		for _, l := range e.allLanes() {
			l.lift()
			e.tellNews(l.id)
		}
		return
	}
	for i := range changed {
		key, err := changed[i].ToString()
		if err != nil {
			continue
		}
		member := strings.TrimSuffix(strings.TrimPrefix(key, statePrefix+"{"), "}")
		if id, err := shardOf(member); err == nil {
			if l := e.kept(id); l != nil {
				l.lift()
				e.tellNews(id)
			}
		}
	}
}

// OnNews sets who hears of shards that may have changed; see dibs.NewsTeller.
func (e *Engine) OnNews(f func(dibs.ShardID)) { e.news.Store(&f) }

func (e *Engine) tellNews(id dibs.ShardID) {
	if f := e.news.Load(); f != nil {
		(*f)(id)
	}
}

// follow has the shard read, soon, for what it refuses everybody with.
func (l *lane) follow() {
	if !l.e.redis.follows() {
		return
	}
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wake == nil {
		// The engine waits for followers once it is closed: none comes after.
		if !l.e.begin() {
			return
		}
		f.wake = make(chan struct{}, 1)
		go l.followOn(f.wake)
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// begin counts one more goroutine that Close waits for; false once closed.
func (e *Engine) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return false
	}
	e.running.Add(1)
	return true
}

// followOn reads the shard when it is woken, and again and again while what it
// read is used.
func (l *lane) followOn(wake <-chan struct{}) {
	defer l.e.running.Done()
	var h *holders
	idle := time.NewTimer(followIdle)
	defer idle.Stop()
	renew := time.NewTicker(renewAfter)
	defer renew.Stop()
	for {
		select {
		case <-l.e.stop:
			l.lift()
			return
		case <-idle.C:
			if l.endFollow() {
				return
			}
			continue
		case <-renew.C:
			if !l.follower.used.Swap(false) {
				continue
			}
		case <-wake:
		}
		idle.Reset(followIdle)
		h = l.readRefusing(h)
		pause := time.NewTimer(followPause)
		select {
		case <-pause.C:
		case <-l.e.stop:
			pause.Stop()
		}
	}
}

// endFollow ends the follower unless it was woken meanwhile.
func (l *lane) endFollow() bool {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.wake) > 0 {
		return false
	}
	f.wake = nil
	f.refusing.Store(nil)
	return true
}

// maxReadings is how often the shard is read at most until its holders are
// known up to where it is.
const maxReadings = 4

// readRefusing reads what the shard refuses with, and sets it unless it heard
// of a change since before it was read. It returns the holders for next time.
func (l *lane) readRefusing(h *holders) *holders {
	ctx, cancel := context.WithTimeout(context.Background(), l.e.cfg.Deadline)
	defer cancel()
	for range maxReadings {
		l.follower.mu.Lock()
		lifts := l.follower.lifts
		l.follower.mu.Unlock()
		r, at, granted, err := l.watch(ctx)
		if err != nil {
			l.e.log.Debug("a shard is not followed", "shard", l.id.String(), "err", err)
			return h
		}
		if _, refuses := r.outcome(l.e.localMS()); !refuses {
			return h
		}
		if h != nil && h.at == at || granted > maxHolders {
			if granted <= maxHolders {
				r.holders = h
			}
			l.set(r, lifts)
			return h
		}
		// Then the shard is read again: what is set must hold with all holders in.
		if h, err = l.holdersAt(ctx, h, at, granted); err != nil {
			l.e.log.Debug("a shard's holders are not read", "shard", l.id.String(), "err", err)
			return nil
		}
	}
	return h
}

// set makes claims be refused, unless something changed since lifts was read.
func (l *lane) set(r *refusing, lifts uint64) {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lifts == lifts {
		f.refusing.Store(r)
	}
}

// holdersAt brings the holders to a place: by the journal, or when that does
// not reach back, from the shard as it is.
func (l *lane) holdersAt(ctx context.Context, h *holders, at dibs.Cursor, granted int64) (*holders, error) {
	if h != nil && h.at.Epoch == at.Epoch && h.at.Before(at) {
		whole, err := l.addJournal(ctx, h, at)
		if err != nil || whole && !h.full() {
			return h, err
		}
	}
	room := granted
	if h != nil {
		room = max(room, h.users)
	}
	return l.readHolders(ctx, at, room)
}

// watch reads what the shard refuses with, the place of its last entry, and
// the units granted.
func (l *lane) watch(ctx context.Context) (r *refusing, at dibs.Cursor, granted int64, err error) {
	sentMS := l.e.localMS()
	res, err := l.read(ctx, watchScript, []string{l.keys.meta})
	heardMS := l.e.localMS()
	if err != nil {
		return nil, at, 0, err
	}
	if len(res.rest) < 6 {
		return nil, at, 0, errShape
	}
	var left int64
	r = &refusing{until: sentMS + followTime.Milliseconds()}
	for i, field := range []*int64{&left, &granted, &r.closed, &r.starts, &r.ends, &r.limitFirst} {
		if *field, err = strconv.ParseInt(res.rest[i].text, 10, 64); err != nil {
			return nil, at, 0, err
		}
	}
	r.empty = left == 0
	// The clock was read between sending and hearing, and shows whole
	// milliseconds only.
	r.low, r.high = res.nowMS-heardMS-clockMargin, res.nowMS-sentMS+clockMargin
	return r, res.at, granted, nil
}
