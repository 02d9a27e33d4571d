package redisengine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// tailPage is how many journal entries are read at a time while opening.
	tailPage = 1 << 14
	// portion is how many values one call loads.
	portion = 4000
	// bucketsFor of usersPer is how many buckets a shard has for its users when
	// everything is granted, and minBuckets leaves room for restocks: a bucket that
	// nobody is in costs nothing. maxBuckets keeps a bucket's number within four
	// bytes. See the package's documentation for what was measured.
	bucketsFor, usersPer = 2, 3
	minBuckets           = 1 << 14
	maxBuckets           = 1 << 30
	// keepEnd is how long it is known where the journal of a retired shard ended: as
	// long as a late payment may bring the campaign back, or somebody an old backup.
	keepEnd = 90 * 24 * time.Hour
	// retireGrace is how long after its window, by Redis' clock, a campaign stays.
	retireGrace = time.Minute
)

// Open makes a shard claimable; see dibs.Engine. The shard is taken out first,
// so that the journal's tail grows no more, then what the load and the tail
// add up to is written, and at last the epoch's first entry opens it, all
// under a token: of two loaders, the one with the later epoch wins.
func (e *Engine) Open(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad) error {
	l, err := e.lane(id)
	if err != nil {
		return err
	}
	l.loading.Add(1)
	defer l.loading.Add(-1)
	o := &opening{l: l, token: e.token(), load: load, def: define(c)}
	err = o.shut(ctx)
	l.lift()
	if err != nil {
		return fmt.Errorf("redisengine: opening shard %s: %w", id, err)
	}
	o.held = newHeld(load)
	last, err := o.replay(ctx)
	if err != nil {
		return fmt.Errorf("redisengine: opening shard %s: %w", id, err)
	}
	left, free := o.left, o.held.freeOf(load)
	switch {
	case left < 0 || c.HasItems() && left != int64(len(free)):
		return fmt.Errorf("redisengine: opening shard %s: %d left, %d free items: %w", id, left, len(free), dibs.ErrCorrupt)
	case last.Epoch >= load.Epoch:
		return fmt.Errorf("redisengine: opening shard %s in epoch %d after %s: %w", id, load.Epoch, last, dibs.ErrGap)
	}
	expected := max(left+int64(len(o.held.claims)), c.Stock.Total/int64(max(c.Shards, 1)))
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
	token   string
	load    *dibs.ShardLoad
	def     definition
	held    *held
	left    int64
	buckets int64
}

// shut takes the shard out. It is listed before anything of it exists, so that no
// journal is ever forgotten. It is listed again once there is something: a process
// that had found nothing before may have taken it off the list meanwhile, and one
// that takes it off later finds another step there than it has read.
func (o *opening) shut(ctx context.Context) error {
	e, k := o.l.e, &o.l.keys
	if err := e.rebind(ctx); err != nil {
		return err
	}
	if err := e.list(ctx, o.l.id, 2*int64(o.load.Epoch)); err != nil {
		return err
	}
	err := o.step(ctx, shutScript, []string{k.meta, k.holdings, k.places, k.journal, k.free, k.issued, k.refs, k.state},
		itoa(o.load.Epoch), o.token)
	if err != nil {
		return err
	}
	return e.list(ctx, o.l.id, 2*int64(o.load.Epoch)+1)
}

// step runs a script of the opening.
func (o *opening) step(ctx context.Context, s *script, keys []string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, o.l.e.cfg.Patience)
	defer cancel()
	r, err := o.l.e.redis.run(ctx, s, keys, args...)
	if err != nil {
		return fault(ctx, dibs.EffectUnknown, err)
	}
	res, err := resultOf(&r)
	if err != nil {
		return dibs.Unavail(dibs.EffectUnknown, err)
	}
	return refusal(&res)
}

// replay adds the journal's entries after the load's position and returns the
// place of the last one.
func (o *opening) replay(ctx context.Context) (dibs.Cursor, error) {
	last := o.load.Position
	o.left = o.load.StockLeft
	for {
		entries, err := o.l.e.ReadJournal(ctx, o.l.id, last, tailPage)
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
			o.left += o.held.redo(en)
			last = en.Cursor
		}
	}
}

// fill writes everything but the meta hash.
func (o *opening) fill(ctx context.Context, free []uint32) error {
	k := &o.l.keys
	holdings, places, err := o.held.packed(o.buckets)
	if err != nil {
		return err
	}
	if err := o.send(ctx, k.holdings, "hash", holdings); err != nil {
		return err
	}
	if err := o.send(ctx, k.places, "hash", places); err != nil {
		return err
	}
	if err := o.send(ctx, k.refs, "set", o.held.refNames()); err != nil {
		return err
	}
	if o.def.items == 0 {
		return nil
	}
	issued, err := o.held.issued(o.load.Items)
	if err != nil {
		return err
	}
	if err := o.send(ctx, k.issued, "hash", issued); err != nil {
		return err
	}
	elements, err := itemsOf(free, o.load.Items)
	if err != nil {
		return err
	}
	return o.send(ctx, k.free, "list", elements)
}

// send writes values in portions.
func (o *opening) send(ctx context.Context, key, kind string, values []string) error {
	for at := 0; at < len(values); at += portion {
		err := o.step(ctx, loadScript, []string{o.l.keys.meta, key}, o.token, kind, strconv.Itoa(at),
			packed(values[at:min(at+portion, len(values))]))
		if err != nil {
			return err
		}
	}
	return nil
}

// begin writes the epoch's first entry; with it the shard is open.
func (o *opening) begin(ctx context.Context, last dibs.Cursor) error {
	d := &o.def
	meta := packed([]string{
		"left", itoa(o.left), "granted", itoa(o.held.granted), "starts", itoa(d.startsMS), "ends", itoa(d.endsMS),
		"closed", itoa(d.closed), "limit", itoa(d.limit), "pay_in", itoa(d.payInMS), "buckets", itoa(o.buckets),
		"items", itoa(d.items), "values", itoa(len(o.load.Items)), "version", itoa(d.version), "limit_first", itoa(d.limitFirst),
	})
	k := &o.l.keys
	err := o.step(ctx, openScript, []string{k.meta, k.journal, k.state}, o.token, itoa(o.load.Epoch), itoa(last.Epoch), itoa(last.Seq), meta)
	if err != nil {
		return err
	}
	o.l.advance(dibs.Cursor{Epoch: o.load.Epoch, Seq: 1})
	o.l.respread(o.buckets)
	o.l.lift()
	o.l.e.signal()
	return nil
}

// Retire forgets a shard; see dibs.Engine. Its journal stays for a while, for
// a ledger that is restored from a backup. What a load has left that was broken off
// is forgotten too, but not while a process works on it: this one, or the one that
// has the shard's lease.
func (e *Engine) Retire(ctx context.Context, id dibs.ShardID) error {
	l, err := e.lane(id)
	if err != nil {
		return err
	}
	if l.loading.Load() > 0 {
		return errLoading
	}
	k := &l.keys
	o := &opening{l: l}
	defer l.lift()
	err = o.step(ctx, retireScript, []string{k.meta, k.holdings, k.places, k.journal, k.free, k.issued, k.refs, k.settler, k.state, k.end},
		itoa(e.cfg.KeepRetired.Milliseconds()), itoa(retireGrace.Milliseconds()), e.name, itoa(keepEnd.Milliseconds()))
	if err == nil || errors.Is(err, dibs.ErrNotOpen) {
		// Another process may have been first. The lease has gone with the shard, or
		// ends by itself.
		l.leased.Store(false)
		l.known.Lock()
		defer l.known.Unlock()
		l.noteGone(true)
	}
	return err
}
