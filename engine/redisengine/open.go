package redisengine

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

const (
	// tailPage is how many journal entries are read at a time while opening.
	tailPage = 1 << 14
	// portion is how many values one call loads.
	portion = 4000
	// bucketsFor of usersPer is how many buckets a shard has for its users when
	// everything is granted, and minBuckets leaves room for restocks: a bucket that
	// has no user costs nothing. maxBuckets keeps a bucket's number within four
	// bytes. See the package's documentation for what was measured.
	bucketsFor, usersPer = 2, 3
	minBuckets           = 1 << 14
	maxBuckets           = 1 << 30
)

// Open makes a shard claimable; see dibs.Engine. The shard is taken out first,
// so that the journal's tail grows no more, then what the load and the tail
// add up to is written, and at last the epoch's first entry opens it, all
// under a token: of two loaders, the one with the later epoch wins. A load that is not
// complete within a day is gone, and ErrStale or unavailable its answer.
func (e *Engine) Open(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad) error {
	l, err := e.lanes.lane(id)
	if err != nil {
		return err
	}
	if l.keys.Product != c.LimitedProduct() {
		return dibs.Unavail(dibs.EffectNone, fmt.Errorf("redisengine: opening shard %s of product %q: it is known as one of %q", id, c.LimitedProduct(), l.keys.Product))
	}
	l.loading.Add(1)
	defer l.loading.Add(-1)
	o := &opening{l: l, token: e.p.token(), ledger: &e.ledger, load: load, def: format.Define(c)}
	err = o.shut(ctx)
	l.follower.lift()
	if err != nil {
		return fmt.Errorf("redisengine: opening shard %s: %w", id, err)
	}
	o.sum = newOpenLoad(load)
	last, err := o.replay(ctx)
	if err != nil {
		return fmt.Errorf("redisengine: opening shard %s: %w", id, err)
	}
	// Without those that the tail took.
	free := slices.DeleteFunc(slices.Clone(load.FreeItems), func(n uint32) bool { return o.sum.taken[n] })
	left := o.left
	switch {
	case left < 0 || c.HasItems() && left != int64(len(free)):
		return fmt.Errorf("redisengine: opening shard %s: %d left, %d free items: %w", id, left, len(free), dibs.ErrCorrupt)
	case last.Epoch >= load.Epoch:
		return fmt.Errorf("redisengine: opening shard %s in epoch %d after %s: %w", id, load.Epoch, last, dibs.ErrGap)
	}
	expected := max(left+int64(len(o.sum.claims)), c.Stock.Total/int64(max(c.Shards, 1)))
	o.buckets = min(max(minBuckets, expected/usersPer*bucketsFor), maxBuckets)
	if err := o.fill(ctx, free); err != nil {
		return fmt.Errorf("redisengine: opening shard %s: %w", id, err)
	}
	if load.Stands != nil {
		if err := load.Stands(ctx); err != nil {
			return fmt.Errorf("redisengine: opening shard %s in epoch %d: %w", id, load.Epoch, err)
		}
	}
	if err := o.begin(ctx, last); err != nil {
		return fmt.Errorf("redisengine: opening shard %s: %w", id, err)
	}
	return nil
}

// opening is one attempt to open a shard.
type opening struct {
	l       *lane
	ledger  *ledgerID
	token   string
	load    *dibs.ShardLoad
	def     format.Definition
	sum     *openLoad
	left    int64
	buckets int64
}

// shut takes the shard out. It is listed before anything of it exists, so that no
// journal is ever forgotten. It is listed again once there is something: a process
// that had found nothing before may have taken it off the list meanwhile, and one
// that takes it off later finds another step there than it has read.
func (o *opening) shut(ctx context.Context) error {
	k, list := &o.l.keys, shardList{o.l.p}
	if err := o.ledger.rebind(ctx); err != nil {
		return err
	}
	if err := list.put(ctx, o.l.id, 2*int64(o.load.Epoch)); err != nil {
		return err
	}
	keys := append([]string{k.Meta, k.Holdings, k.Places, k.Journal, k.Free, k.Issued, k.Refs, k.State}, k.OfProduct()...)
	_, err := o.l.p.step(ctx, conn.ShutScript, keys,
		format.Itoa(o.load.Epoch), o.token, o.def.Divided)
	if err != nil {
		return err
	}
	return list.put(ctx, o.l.id, 2*int64(o.load.Epoch)+1)
}

// replay adds the journal's entries after the load's position and returns the
// place of the last one.
func (o *opening) replay(ctx context.Context) (dibs.Cursor, error) {
	last := o.load.Position
	o.left = o.load.StockLeft
	for {
		entries, err := o.l.readJournal(ctx, last, tailPage)
		if err != nil {
			return last, err
		}
		if len(entries) == 0 {
			return last, nil
		}
		for i := range entries {
			en := &entries[i]
			if !dibs.Continues(last, en) {
				return last, fmt.Errorf("entry %s after %s: %w", en.Cursor, last, dibs.ErrGap)
			}
			o.left += o.sum.redo(en)
			last = en.Cursor
		}
	}
}

// fill writes everything but the meta hash.
func (o *opening) fill(ctx context.Context, free []uint32) error {
	k := &o.l.keys
	holdings, places, err := o.sum.packed(o.buckets)
	if err != nil {
		return err
	}
	if err := o.send(ctx, k.Holdings, "hash", holdings); err != nil {
		return err
	}
	if err := o.send(ctx, k.Places, "hash", places); err != nil {
		return err
	}
	if err := o.count(ctx); err != nil {
		return err
	}
	if err := o.send(ctx, k.Refs, "set", o.sum.refNames()); err != nil {
		return err
	}
	if o.def.Items == 0 {
		return nil
	}
	issued, err := o.sum.issued(o.load.Items)
	if err != nil {
		return err
	}
	if err := o.send(ctx, k.Issued, "hash", issued); err != nil {
		return err
	}
	elements, err := itemsOf(free, o.load.Items)
	if err != nil {
		return err
	}
	return o.send(ctx, k.Free, "list", elements)
}

// send writes values in portions.
func (o *opening) send(ctx context.Context, key, kind string, values []string) error {
	for at := 0; at < len(values); at += portion {
		_, err := o.l.p.step(ctx, conn.LoadScript, []string{o.l.keys.Meta, key}, o.token, kind, strconv.Itoa(at),
			format.Packed(values[at:min(at+portion, len(values))]))
		if err != nil {
			return err
		}
	}
	return nil
}

// begin writes the epoch's first entry; with it the shard is open.
func (o *opening) begin(ctx context.Context, last dibs.Cursor) error {
	d := &o.def
	meta := []string{
		"left", format.Itoa(o.left), "granted", format.Itoa(o.sum.granted), "starts", format.Itoa(d.StartsMS), "ends", format.Itoa(d.EndsMS),
		"closed", format.Itoa(d.Closed), "limit", format.Itoa(d.Limit), "pay_in", format.Itoa(d.PayInMS), "buckets", format.Itoa(o.buckets),
		"items", format.Itoa(d.Items), "values", format.Itoa(len(o.load.Items)), "version", format.Itoa(d.Version), "limit_first", format.Itoa(d.LimitFirst),
		"shards", format.Itoa(d.Shards),
	}
	if o.sum.moved != 0 {
		meta = append(meta, "moved", format.Itoa(o.sum.moved))
	}
	k := &o.l.keys
	keys, sharing := []string{k.Meta, k.Journal, k.State, k.Holdings, k.Places, k.Free, k.Issued, k.Refs}, make([]string, len(o.load.Sharing))
	for i, campaign := range o.load.Sharing {
		sharing[i] = format.Itoa(campaign)
	}
	if k.Product != "" {
		keys = append(keys, k.Counted)
		meta = append(meta, "campaign", format.Itoa(o.l.id.Campaign), "of_product", format.Itoa(d.OfProduct))
	}
	_, err := o.l.p.step(ctx, conn.OpenScript, keys, o.token, format.Itoa(o.load.Epoch), format.Itoa(last.Epoch), format.Itoa(last.Seq), format.Packed(meta),
		format.Itoa(o.l.id.Campaign), format.Packed(sharing))
	if err != nil {
		return err
	}
	o.l.advance(dibs.Cursor{Epoch: o.load.Epoch, Seq: 1})
	o.l.respread(o.buckets, int64(d.Shards))
	o.l.follower.lift()
	o.l.p.signal()
	return nil
}
