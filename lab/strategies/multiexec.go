package strategies

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/rueidis"
)

// multiExec does what the script does by WATCH, MULTI and EXEC: it
// watches, reads, queues its writes, and begins again when anybody changed what
// it read, which in a rush somebody always did.
type multiExec struct{ connected }

// openMultiExec takes connections of its own: WATCH belongs to a connection, and two callers on one
// would watch for each other.
func openMultiExec(ctx context.Context, w *World) (Attempt, error) {
	a := &multiExec{dedicate(w)}
	return a, a.fill(ctx)
}

// Claim implements Attempt.
func (a *multiExec) Claim(ctx context.Context, user string) (Outcome, error) {
	c := <-a.free
	defer func() { a.free <- c }()
	for {
		out, done, err := a.try(ctx, c, user)
		if done || err != nil {
			return out, err
		}
		select {
		case <-a.Over:
			return Busy, nil
		default:
		}
	}
}

// try makes one transaction; it is not done when another one was faster.
func (a *multiExec) try(ctx context.Context, c rueidis.DedicatedClient, user string) (out Outcome, done bool, err error) {
	a.Redis.calls.Add(3)
	read := c.DoMulti(ctx, c.B().Watch().Key(ownersKey, packetsKey).Build(),
		c.B().Hexists().Key(ownersKey).Field(user).Build(), c.B().Lindex().Key(packetsKey).Index(-1).Build())
	has, err := read[1].AsBool()
	if err != nil {
		return Busy, false, err
	}
	share, err := read[2].ToString()
	empty := rueidis.IsRedisNil(err)
	if err != nil && !empty {
		return Busy, false, err
	}
	if has || empty {
		a.Redis.calls.Add(1)
		out = SoldOut
		if has {
			out = Again
		}
		return out, true, c.Do(ctx, c.B().Unwatch().Build()).Error()
	}
	var data map[string]any
	if err := json.Unmarshal([]byte(share), &data); err != nil {
		return Busy, false, err
	}
	data["userId"] = user
	taken, err := json.Marshal(data)
	if err != nil {
		return Busy, false, err
	}
	a.Redis.calls.Add(5)
	wrote := c.DoMulti(ctx, c.B().Multi().Build(), c.B().Rpop().Key(packetsKey).Build(),
		c.B().Hset().Key(ownersKey).FieldValue().FieldValue(user, fmt.Sprint(data["id"])).Build(),
		c.B().Lpush().Key(takenKey).Element(string(taken)).Build(), c.B().Exec().Build())
	err = wrote[4].Error()
	if rueidis.IsRedisNil(err) {
		return Busy, false, nil
	}
	return Granted, err == nil, err
}
