package redisengine

import (
	"context"
	"errors"
	"math"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// Release gives a claim's stock back; see dibs.Engine.
func (e *Engine) Release(ctx context.Context, r dibs.Release) error {
	l, err := e.lanes.lane(r.Claim.ShardID)
	if err != nil {
		return err
	}
	k := &l.keys
	keys := append([]string{k.Meta, k.Holdings, k.Places, k.Journal, k.Free, k.Issued, k.State}, k.OfProduct()...)
	return l.change(ctx, conn.ReleaseScript, keys,
		format.Itoa(r.Claim.Epoch), format.Itoa(r.Claim.Seq), format.Itoa(r.Epoch))
}

// Adjust changes the stock; see dibs.Engine.
func (e *Engine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	l, err := e.lanes.lane(a.Shard)
	if err != nil {
		return err
	}
	if len(a.Ref) > math.MaxUint8 {
		return dibs.Invalid(dibs.Fault{Field: "/ref", Problem: dibs.Textf(
			"must be at most %d bytes", "最多 %d 字节", math.MaxUint8)})
	}
	if a.Numbers != nil && len(a.Numbers) != len(a.Items) {
		return dibs.Invalid(dibs.Fault{Field: "/numbers", Problem: dibs.Text{EN: "must be as many as the items", ZH: "必须与 items 数量相同"}})
	}
	items := make([]string, len(a.Items))
	for i, value := range a.Items {
		items[i] = string(format.AppendItem(nil, a.Number(i), value))
	}
	first := format.Itoa(a.FirstItem)
	if a.Numbers != nil {
		first = "-1"
	}
	transfer := "0"
	if _, ok := dibs.TransferOf(a.Ref); ok {
		transfer = "1"
	}
	k := &l.keys
	return l.change(ctx, conn.AdjustScript, []string{k.Meta, k.Refs, k.Journal, k.Free, k.State},
		format.Itoa(a.Epoch), a.Ref, format.Itoa(a.Delta), first, format.Packed(items), transfer)
}

// Configure applies a campaign's definition to all its shards; see
// dibs.Engine. Those that are not open do not keep the others from it.
func (e *Engine) Configure(ctx context.Context, c *dibs.Campaign) error {
	var errs []error
	for i := range c.Shards {
		errs = append(errs, e.ConfigureShard(ctx, c, dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}))
	}
	return errors.Join(errs...)
}

// ConfigureShard is Configure for one shard of the campaign: the others may be on other
// deployments.
func (e *Engine) ConfigureShard(ctx context.Context, c *dibs.Campaign, id dibs.ShardID) error {
	l, err := e.lanes.lane(id)
	if err != nil {
		return err
	}
	d := format.Define(c)
	return l.change(ctx, conn.ConfigureScript, []string{l.keys.Meta, l.keys.State},
		format.Itoa(d.Version), format.Itoa(d.Closed), format.Itoa(d.StartsMS), format.Itoa(d.EndsMS), format.Itoa(d.Limit), format.Itoa(d.OfProduct),
		format.Itoa(d.Shards))
}

// change runs a script that changes the shard, for what it answers beside ok.
func (l *lane) change(ctx context.Context, s *conn.Script, keys []string, args ...string) error {
	if err := ctx.Err(); err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	ctx, cancel := context.WithTimeout(ctx, l.p.cfg.Patience)
	defer cancel()
	res, err := l.run(ctx, s, keys, args...)
	// Also when the change failed, Redis is asked again for what was refused before.
	l.follower.lift()
	if err != nil {
		return conn.Fault(ctx, dibs.EffectUnknown, err)
	}
	if res.Word == "ok" {
		l.p.signal()
	}
	return conn.Refusal(&res)
}
