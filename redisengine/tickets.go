package redisengine

import (
	"context"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
)

// Put keeps a small value under a name for a time, for whichever process takes
// it first: tickets, say. The name is a secret, of which Redis sees a hash.
func (e *Engine) Put(ctx context.Context, name, value string, keep time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Deadline)
	defer cancel()
	_, err := e.redis.call(ctx, "SET", ticketKey(name), value, "PX", strconv.FormatInt(max(keep.Milliseconds(), 1), 10))
	if err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	return nil
}

// Take returns the value under a name and forgets it, in one step; false when
// there is none.
func (e *Engine) Take(ctx context.Context, name string) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Deadline)
	defer cancel()
	r, err := e.redis.call(ctx, "GETDEL", ticketKey(name))
	if err != nil {
		return "", false, dibs.Unavail(dibs.EffectNone, err)
	}
	return r.text, !r.none, nil
}
