package redisengine

import (
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

// keepGone is how long a lane stays whose shard Redis does not hold. A shard that
// was lost and is loaded again is there long before.
const keepGone = time.Minute

// errDropped says that the engine has let go of a lane. It never gets out: who
// meets it takes the lane that has followed.
var errDropped = errors.New("redisengine: the lane was dropped")

// noteGone notes whether Redis holds the shard. It is called with known held.
func (l *lane) noteGone(gone bool) {
	switch {
	case !gone:
		l.goneMS = 0
	case l.goneMS == 0:
		l.goneMS = max(l.e.localMS(), 1)
	}
}

// holds reports whether Redis held the shard when this process heard of it last.
func (l *lane) holds() bool {
	l.known.Lock()
	defer l.known.Unlock()
	return l.goneMS == 0 && l.seen != (dibs.Cursor{})
}

// dropGone takes the lanes off a map whose shards are gone: campaigns come and
// go, and a process that runs for long would keep something of each. It is done
// whenever a lane is added, under the engine's lock: then they never add up.
func (e *Engine) dropGone(lanes laneMap) {
	before := e.localMS() - keepGone.Milliseconds()
	for key, l := range lanes {
		if l.drop(before) {
			delete(lanes, key)
		}
	}
}

// drop ends a lane that nobody needs, when its shard has been gone since before
// a local time, in ms. What was seen of the shard goes with it: where it is
// opened again, it is in a later epoch.
func (l *lane) drop(beforeMS int64) bool {
	l.known.Lock()
	gone := l.goneMS > 0 && l.goneMS < beforeMS
	l.known.Unlock()
	if !gone || l.leased.Load() || l.loading.Load() > 0 {
		return false
	}
	// Who holds it makes a follower, and may wait for the engine's lock to do so,
	// which is held here.
	if !l.follower.mu.TryLock() {
		return false
	}
	followed := l.follower.wake != nil
	l.follower.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = !followed && len(l.queue) == 0 && l.flying == 0
	return l.dropped
}
