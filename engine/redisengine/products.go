package redisengine

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// counts reports whether claims of a shard that is not open count towards the limit of
// its product; see dibs.Abilities. The server may have forgotten by now: then the
// shard is opened once too often.
func (e *Engine) counts(ctx context.Context, id dibs.ShardID) (bool, error) {
	s, err := e.lanes.shard(id)
	if err != nil || s.keys.Product == "" {
		return false, err
	}
	if _, err := s.stats(ctx); !errors.Is(err, dibs.ErrNotOpen) {
		return false, err
	}
	r, err := e.p.hget(ctx, s.keys.Counted, format.Itoa(id.Campaign))
	return err == nil && !r.None && r.Text != "0", err
}

// count writes what users hold on the shard beside what others of the product hold. It
// counts from the step on that opens the shard.
func (o *opening) count(ctx context.Context) error {
	k := &o.l.keys
	if k.Product == "" {
		return nil
	}
	held := o.sum.held()
	for at := 0; at < len(held); at += portion {
		_, err := o.l.p.step(ctx, conn.CountScript, []string{k.Meta, k.Counted, k.Units}, o.token, format.Itoa(o.l.id.Campaign),
			format.Itoa(o.load.Epoch), format.Packed(held[at:min(at+portion, len(held))]))
		if err != nil {
			return err
		}
	}
	return nil
}

// held returns the names of users, each with the units that are not released.
func (h *openLoad) held() []string {
	units := make(map[string]int64)
	for i := range h.claims {
		if c := &h.claims[i]; !c.Released {
			units[c.UserID] += c.Quantity
		}
	}
	all := make([]string, 0, 2*len(units))
	for user, n := range units {
		all = append(all, string(format.AppendName(nil, user)), format.Itoa(n))
	}
	return all
}
