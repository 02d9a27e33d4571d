package redisengine

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

const (
	// followTime is how long what is refused here holds without being read again,
	// and renewAfter when it is, while it is used.
	followTime = time.Second
	renewAfter = 400 * time.Millisecond
	// followPause is the shortest time between two readings.
	followPause = 10 * time.Millisecond
	// followIdle is how long a follower stays that is not needed.
	followIdle = 30 * time.Second
	// clockMargin is added to the measured error of Redis' clock, in ms.
	clockMargin = 5
)

// refusing is what a shard refuses every user with who has no claim: state,
// window, and stock. It is never changed.
type refusing struct {
	closed       int64
	starts, ends int64
	empty        bool
	// limitFirst is 1 when the limit per user is checked before the stock.
	limitFirst int64
	// shards is by how many shards users are divided; 0 when not known.
	shards int64
	// low and high bound by how much Redis' clock is ahead of the local one, and
	// until is the local time up to which this holds, all in ms.
	low, high, until int64
	// holders is nil when there are too many to remember.
	holders *holders
}

// outcome is the answer for every user who has no claim; false when that cannot be
// told here.
func (r *refusing) outcome(localMS int64) (dibs.Reason, bool) {
	early, late := localMS+r.low, localMS+r.high
	switch {
	case localMS >= r.until:
		return 0, false
	case r.closed == format.IsPaused:
		return dibs.Paused, true
	case r.closed == format.IsEnded || early >= r.ends:
		return dibs.Ended, true
	case late < r.starts:
		return dibs.NotStarted, true
	case r.empty && early >= r.starts && late < r.ends:
		return dibs.SoldOut, true
	}
	return 0, false
}

// follower keeps what a shard refuses with while that is true.
//
// refusing is read by claims without a lock, and written under mu: nil when claims
// have to be asked for in Redis. lifts rises with each change that is noticed; what was
// read from Redis before the last of them is never set. At most one goroutine reads
// the shard again, while wake is set.
type follower struct {
	shard    *shard
	refusing atomic.Pointer[refusing]
	// used is set when something was refused since the last reading.
	used atomic.Bool

	mu sync.Mutex
	// lifts counts the changes that were told of: what was read before the last of
	// them is not refused with.
	lifts uint64
	// wake is the running follower's; nil while there is none.
	wake chan struct{}
}

// refuses answers a claim here when that is what Redis would say: no user without a
// claim gets one, and this is no repeat, since it has no key or its user surely has
// no claim. It takes no lock and no memory.
func (f *follower) refuses(req *dibs.EngineClaim) (dibs.Reason, bool) {
	r := f.refusing.Load()
	if r == nil || req.Late || strays(req, r.shards) {
		// By another number of shards, the claim may be the repeat of one on another shard.
		return 0, false
	}
	outcome, ok := r.outcome(f.shard.p.localMS())
	if req.OnlyKnown {
		return f.unknown(r, req, ok)
	}
	// A holder's repeat is for Redis, and so is their limit where it comes first, and
	// that of any user who asks for more than one.
	asks := req.Key != 0 || outcome == dibs.SoldOut && r.limitFirst == 1
	if outcome == dibs.SoldOut && r.limitFirst == 1 && req.Quantity > 1 {
		return 0, false
	}
	if !ok || asks && (r.holders == nil || r.holders.may(req.UserID)) {
		return 0, false
	}
	if !f.used.Load() {
		f.used.Store(true)
	}
	if req.OnlyRepeat {
		return dibs.Overloaded, true
	}
	return outcome, true
}

// unknown answers a claim of known users alone, while the shard refuses every user who
// has no claim. Once a shard obeys the number of shards that the claim came by, a user
// who has no claim there never gets one: what was read since then holds. Their repeat
// may be on another shard, so that no refusal of this one is theirs.
func (f *follower) unknown(r *refusing, req *dibs.EngineClaim, refuses bool) (dibs.Reason, bool) {
	if !refuses || r.holders == nil || r.shards != int64(req.Shards) || r.holders.may(req.UserID) {
		return 0, false
	}
	if !f.used.Load() {
		f.used.Store(true)
	}
	return dibs.NotFound, true
}

// lift ends all refusing until the shard was read again.
func (f *follower) lift() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lifts++
	f.refusing.Store(nil)
}

// follow has the shard read, soon, for what it refuses every user with.
func (f *follower) follow() {
	if !f.shard.p.redis.Follows() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wake == nil {
		wake := make(chan struct{}, 1)
		// The engine waits for followers once it is closed: none comes after.
		if !f.shard.p.start(func() { f.followOn(wake) }) {
			return
		}
		f.wake = wake
	}
	wait.Kick(f.wake)
}

// followOn reads the shard when it is woken, and again and again while what it
// read is used.
func (f *follower) followOn(wake <-chan struct{}) {
	var h *holders
	idle := time.NewTimer(followIdle)
	defer idle.Stop()
	renew := time.NewTicker(renewAfter)
	defer renew.Stop()
	for {
		select {
		case <-f.shard.p.stop:
			f.lift()
			return
		case <-idle.C:
			if f.endFollow() {
				return
			}
			continue
		case <-renew.C:
			if !f.used.Swap(false) {
				continue
			}
		case <-wake:
		}
		idle.Reset(followIdle)
		h = f.readRefusing(h)
		pause := time.NewTimer(followPause)
		select {
		case <-pause.C:
		case <-f.shard.p.stop:
			pause.Stop()
		}
	}
}

// endFollow ends the follower unless it was woken meanwhile.
func (f *follower) endFollow() bool {
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

// readRefusing reads what the shard refuses with, and sets it unless a
// change was told of since before it was read. It returns the holders for next time.
func (f *follower) readRefusing(h *holders) *holders {
	ctx, cancel := context.WithTimeout(context.Background(), f.shard.p.cfg.Deadline)
	defer cancel()
	for range maxReadings {
		f.mu.Lock()
		lifts := f.lifts
		f.mu.Unlock()
		r, at, granted, err := f.watch(ctx)
		if err != nil {
			f.shard.p.log.Debug("a shard is not followed", "shard", f.shard.id.String(), "err", err)
			return h
		}
		if _, refuses := r.outcome(f.shard.p.localMS()); !refuses {
			return h
		}
		if h != nil && h.at == at || granted > maxHolders {
			if granted <= maxHolders {
				r.holders = h
			}
			f.set(r, lifts)
			return h
		}
		// Then the shard is read again: what is set must hold with all holders in.
		if h, err = f.holdersAt(ctx, h, at, granted); err != nil {
			f.shard.p.log.Debug("a shard's holders are not read", "shard", f.shard.id.String(), "err", err)
			return nil
		}
	}
	return h
}

// set makes claims be refused, unless something changed since lifts was read.
func (f *follower) set(r *refusing, lifts uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lifts == lifts {
		f.refusing.Store(r)
	}
}

// holdersAt brings the holders to a place: by the journal, or when that does
// not reach back, from the shard as it is.
func (f *follower) holdersAt(ctx context.Context, h *holders, at dibs.Cursor, granted int64) (*holders, error) {
	if h != nil && h.at.Epoch == at.Epoch && h.at.Before(at) {
		whole, err := f.shard.addJournal(ctx, h, at)
		if err != nil || whole && !h.full() {
			return h, err
		}
	}
	room := granted
	if h != nil {
		room = max(room, h.users)
	}
	return f.shard.readHolders(ctx, at, room)
}

// watch reads what the shard refuses with, the place of its last entry, and
// the units granted.
func (f *follower) watch(ctx context.Context) (r *refusing, at dibs.Cursor, granted int64, err error) {
	sentMS := f.shard.p.localMS()
	res, err := f.shard.read(ctx, conn.WatchScript, []string{f.shard.keys.Meta})
	heardMS := f.shard.p.localMS()
	if err != nil {
		return nil, at, 0, err
	}
	if len(res.Rest) < 7 {
		return nil, at, 0, conn.ErrShape
	}
	var left int64
	r = &refusing{until: sentMS + followTime.Milliseconds()}
	for i, field := range []*int64{&left, &granted, &r.closed, &r.starts, &r.ends, &r.limitFirst, &r.shards} {
		if *field, err = strconv.ParseInt(res.Rest[i].Text, 10, 64); err != nil {
			return nil, at, 0, err
		}
	}
	r.empty = left == 0
	// The clock was read between sending and hearing, and shows whole
	// milliseconds only.
	r.low, r.high = res.NowMS-heardMS-clockMargin, res.NowMS-sentMS+clockMargin
	return r, res.At, granted, nil
}

// resting reports whether nothing reads the shard again for its refusals. It does not
// wait: when the follower is being started just now it is not.
func (f *follower) resting() bool {
	if !f.mu.TryLock() {
		return false
	}
	defer f.mu.Unlock()
	return f.wake == nil
}
