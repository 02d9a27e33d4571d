package redisengine

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// yieldWait bounds how long the closing engine takes to give a lease back.
const yieldWait = time.Second

// Shared is true: every process that connects decides on the same shards.
func (e *Engine) Shared() bool { return true }

// Lease makes this process the one that settles and loads a shard; see
// dibs.Journal.
func (e *Engine) Lease(ctx context.Context, id dibs.ShardID, settled dibs.Cursor) (bool, error) {
	l, err := e.lanes.lane(id)
	if err != nil {
		return false, err
	}
	// Noted before it is asked for: the answer may get lost.
	l.leased.Store(true)
	res, err := e.p.step(ctx, conn.LeaseScript, []string{l.keys.Settler, l.keys.Meta},
		e.p.name, format.Itoa(dibs.LeaseTime.Milliseconds()), format.Itoa(settled.Epoch), format.Itoa(settled.Seq))
	if res.Word == "held" {
		l.leased.Store(false)
		return false, nil
	}
	return err == nil, err
}

// yield gives all leases back, so that another process takes over at once. A
// lease that cannot be given back ends by itself.
func (e *Engine) yield(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, yieldWait)
	defer cancel()
	for _, l := range e.lanes.last() {
		if !l.leased.Swap(false) {
			continue
		}
		if _, err := e.p.redis.Run(ctx, conn.UnleaseScript, []string{l.keys.Settler}, e.p.name); err != nil {
			e.p.log.Warn("a lease is not given back, and ends by itself", "shard", l.id.String(), "err", err)
			return
		}
	}
}
