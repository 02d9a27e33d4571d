package redisengine

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// Release gives a claim's stock back; see dibs.Engine.
func (e *Engine) Release(ctx context.Context, r dibs.Release) error {
	l, err := e.lane(r.Claim.ShardID)
	if err != nil {
		return err
	}
	k := &l.keys
	return l.change(ctx, releaseScript, []string{k.meta, k.holdings, k.places, k.journal, k.free, k.issued, k.state},
		itoa(r.Claim.Epoch), itoa(r.Claim.Seq), itoa(r.Epoch))
}

// Adjust changes the stock; see dibs.Engine.
func (e *Engine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	l, err := e.lane(a.Shard)
	if err != nil {
		return err
	}
	if len(a.Ref) > math.MaxUint8 {
		return dibs.Invalid(dibs.Fault{Field: "/ref", Problem: dibs.Textf(
			"must be at most %d bytes", "最多 %d 字节", math.MaxUint8)})
	}
	items := make([]string, len(a.Items))
	for i, value := range a.Items {
		items[i] = string(appendItem(nil, a.FirstItem+uint32(i), value))
	}
	k := &l.keys
	return l.change(ctx, adjustScript, []string{k.meta, k.refs, k.journal, k.free, k.state},
		itoa(a.Epoch), a.Ref, itoa(a.Delta), itoa(a.FirstItem), packed(items))
}

// Configure applies a campaign's definition to all its shards; see
// dibs.Engine. Those that are not open do not keep the others from it.
func (e *Engine) Configure(ctx context.Context, c *dibs.Campaign) error {
	var errs []error
	for i := range c.Shards {
		l, err := e.lane(dibs.ShardID{Campaign: c.Number, Shard: uint8(i)})
		if err != nil {
			return err
		}
		d := define(c)
		errs = append(errs, l.change(ctx, configureScript, []string{l.keys.meta, l.keys.state},
			itoa(d.version), itoa(d.closed), itoa(d.startsMS), itoa(d.endsMS), itoa(d.limit)))
	}
	return errors.Join(errs...)
}

// change runs a script that changes the shard, for what it answers beside ok.
func (l *lane) change(ctx context.Context, s *script, keys []string, args ...string) error {
	if err := ctx.Err(); err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	ctx, cancel := context.WithTimeout(ctx, l.e.cfg.Patience)
	defer cancel()
	res, err := l.run(ctx, s, keys, args...)
	// Whatever came of it, what was refused before is asked anew.
	l.lift()
	if err != nil {
		return fault(ctx, dibs.EffectUnknown, err)
	}
	if res.word == "ok" {
		l.e.signal()
	}
	return refusal(&res)
}

// itoa writes a whole number.
func itoa[T ~int | ~uint8 | ~uint16 | ~uint32 | ~int64](n T) string {
	return strconv.FormatInt(int64(n), 10)
}

// packed writes strings as a msgpack array.
func packed(values []string) string {
	buf := binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(len(values)))
	for _, v := range values {
		buf = append(binary.BigEndian.AppendUint32(append(buf, 0xdb), uint32(len(v))), v...)
	}
	return string(buf)
}

// definition is a campaign as the scripts read it.
type definition struct {
	version, startsMS, endsMS, payInMS, limit int64
	closed, items, limitFirst                 int
}

// The values of definition.closed.
const (
	isOpen = iota
	isPaused
	isEnded
)

func define(c *dibs.Campaign) definition {
	d := definition{
		version: c.Version, startsMS: c.StartsAt.UnixMilli(), endsMS: c.EndsAt.UnixMilli(),
		payInMS: c.PayWithin.Milliseconds(), limit: min(c.LimitPerUser, math.MaxUint32),
	}
	switch c.State {
	case dibs.Published:
		d.closed = isOpen
	case dibs.PausedState:
		d.closed = isPaused
	default:
		d.closed = isEnded
	}
	if c.HasItems() {
		d.items = 1
	}
	if c.LimitFirst() {
		d.limitFirst = 1
	}
	return d
}
