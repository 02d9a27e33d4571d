package live

import (
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// rivals remembers the shards that this node may not load, since another server holds them that
// is alive. After a failover both may live on, each with some shards, and wait for each other;
// a node that has waited for longer than a server counts as alive insists, and the ledger gives
// all to one of the two. It is safe for concurrent use; the zero value is empty.
type rivals struct{ shards sync.Map } // dibs.ShardID -> rivalry

// rivalry is since when a shard has been refused, and when it was the last time.
type rivalry struct{ since, last time.Time }

// rivalryOver is how long after the last refusal the next one is the first of another rivalry:
// much longer than the pause between two attempts.
const rivalryOver = time.Minute

// insists reports whether a shard has been refused for longer than a server counts as alive.
func (r *rivals) insists(id dibs.ShardID) bool {
	v, ok := r.shards.Load(id)
	if !ok {
		return false
	}
	is := v.(rivalry)
	return time.Since(is.last) < rivalryOver && is.last.Sub(is.since) > dibs.ServerLife
}

// after notes what the ledger said to a load.
func (r *rivals) after(id dibs.ShardID, err error) {
	if !errors.Is(err, dibs.ErrElsewhere) {
		r.shards.Delete(id)
		return
	}
	now := time.Now()
	is := rivalry{since: now, last: now}
	if v, ok := r.shards.Load(id); ok && now.Sub(v.(rivalry).last) < rivalryOver {
		is.since = v.(rivalry).since
	}
	r.shards.Store(id, is)
}
