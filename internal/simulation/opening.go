package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// tailPage is how many entries a loader reads at a time: few, so that much can
// happen in between.
const tailPage = 16

// loadWithin is how long Redis keeps a load that is not complete. No run takes so long,
// so only the judge has to know.
const loadWithin = 24 * time.Hour

// opening is one attempt to open a shard, by the steps of the Redis engine:
// anything may happen between two of them.
//
// It is one goroutine's. Between two steps another node may load the same shard, the
// server may be restarted, or the loader may die: each step checks by the token that
// the load is still this one.
type opening struct {
	e     *engine
	id    dibs.ShardID
	token string
	load  *dibs.ShardLoad
	def   definition
	// The sum of the load and the journal's tail, and the tail's last entry.
	last   dibs.Cursor
	left   int64
	moved  int64
	claims []dibs.Holding
	refs   map[string]bool
	taken  []uint32
}

// Open makes a shard claimable; see dibs.Engine.
func (e *engine) Open(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad) error {
	o := &opening{
		e: e, id: id, token: e.newToken(), load: load, def: define(c),
		left: load.StockLeft, moved: load.Moved, claims: slices.Clone(load.Holdings), refs: map[string]bool{},
	}
	for _, ref := range load.Refs {
		o.refs[ref] = true
	}
	for _, step := range []func(context.Context) error{o.note, o.shut, o.again, o.replay, o.fill, o.stands, o.begin} {
		// A load that was begun stays: the next load takes its place, or the shard is retired.
		if err := step(ctx); err != nil {
			return fmt.Errorf("simulation: opening shard %s in epoch %d: %w", id, load.Epoch, err)
		}
	}
	return nil
}

// note puts the shard on the list, before anything of it exists; again does once
// there is something, since somebody may have taken it off the list meanwhile.
func (o *opening) note(ctx context.Context) error { return o.list(ctx, 2*int64(o.load.Epoch)) }

func (o *opening) again(ctx context.Context) error {
	if o.e.p.w.planted.ListedOnce {
		return nil
	}
	return o.list(ctx, 2*int64(o.load.Epoch)+1)
}

func (o *opening) list(ctx context.Context, step int64) error {
	_, err := ask(ctx, o.e, "list", dibs.EffectUnknown, func(v *server) (none, error) {
		v.mem.listed[o.id] = step
		return none{}, nil
	})
	return err
}

// shut takes the shard out.
func (o *opening) shut(ctx context.Context) error {
	_, err := ask(ctx, o.e, "shut", dibs.EffectUnknown, func(v *server) (none, error) {
		s := v.mem.shards[o.id]
		// A loader with an older epoch has been overtaken. One with the same epoch may
		// repeat its own step and no other loader's.
		replaces := false
		if s != nil {
			same := s.state == stateLoading && s.token == o.token
			if o.load.Epoch < s.head.Epoch || o.load.Epoch == s.head.Epoch && !same {
				return none{}, dibs.ErrStale
			}
			replaces = s.state != stateLoading || s.replaces
		}
		v.mem.shards[o.id] = &shard{
			state: stateLoading, run: v.run, token: o.token, head: dibs.Cursor{Epoch: o.load.Epoch}, replaces: replaces,
		}
		if j, there := v.stream(o.id); there && !j.gone.IsZero() {
			j.gone = v.scene.now().Add(loadWithin)
		}
		v.scene.story.tell("%s: %s loads shard %s in epoch %d from %s", v.name, o.e.p.name, o.id, o.load.Epoch, o.load.Position)
		return none{}, nil
	})
	return err
}

// loading refuses a loader whose load another one has taken over.
func (o *opening) loading(v *server) (*shard, error) {
	s := v.mem.shards[o.id]
	switch {
	case s != nil && s.token != o.token:
		return nil, dibs.ErrStale
	case s == nil || s.state != stateLoading || s.run != v.run:
		return nil, dibs.Unavail(dibs.EffectNone, errTaken)
	}
	return s, nil
}

// replay adds the journal's entries after the load's position.
func (o *opening) replay(ctx context.Context) error {
	last := o.load.Position
	for {
		entries, err := o.e.ReadJournal(ctx, o.id, last, tailPage)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		for i := range entries {
			// A gap means that grants are missing; dibs never opens a shard over it.
			if !dibs.Continues(last, &entries[i]) {
				return fmt.Errorf("entry %s after %s: %w", entries[i].Cursor, last, dibs.ErrGap)
			}
			o.redo(&entries[i])
			last = entries[i].Cursor
		}
	}
	o.last = last
	// A sum that cannot be: the ledger and the journal are not of one history.
	if o.left < 0 || o.def.items && o.left != int64(len(o.free())) || last.Epoch >= o.load.Epoch {
		return fmt.Errorf("%d left, %d items, after %s: %w", o.left, len(o.free()), last, dibs.ErrCorrupt)
	}
	return nil
}

// redo applies an entry that the ledger has not settled. Moves that the ledger makes
// before the engine are in the load already.
func (o *opening) redo(en *dibs.Entry) {
	switch {
	case en.Kind == dibs.EntryGrant:
		o.left -= en.Quantity
		o.taken = append(o.taken, en.Items...)
		o.claims = append(o.claims, dibs.Holding{
			Cursor: en.Cursor, UserID: en.UserID, Key: en.Key, Quantity: en.Quantity, At: en.At, PayBy: en.PayBy, Items: en.Items,
		})
	case en.Kind == dibs.EntryAdjust && en.Quantity < 0 && (!o.refs[en.Ref] || o.e.p.w.planted.TakenTwice):
		// A restock is counted by its name in the load alone: a ledger that went back
		// to before it sends it again. A withdrawal that was settled ahead is in the load.
		o.refs[en.Ref] = true
		o.left += en.Quantity
		if _, ok := dibs.TransferOf(en.Ref); ok {
			o.moved -= en.Quantity
		}
		o.taken = append(o.taken, en.Items...)
	}
}

// free are the items that nobody holds.
func (o *opening) free() []uint32 {
	return slices.DeleteFunc(slices.Clone(o.load.FreeItems), func(n uint32) bool { return slices.Contains(o.taken, n) })
}

// fillSteps is how many portions a load is sent in.
const fillSteps = 2

// fill sends what is held, in portions.
func (o *opening) fill(ctx context.Context) error {
	for range fillSteps {
		if _, err := ask(ctx, o.e, "load", dibs.EffectUnknown, func(v *server) (none, error) {
			s, err := o.loading(v)
			if err != nil || s.replaces {
				return none{}, err
			}
			return none{}, v.needs()
		}); err != nil {
			return err
		}
	}
	return nil
}

// stands asks whether the load's epoch is still the latest.
// It is the last question before the shard opens: a loader that stood still meanwhile
// must not open an epoch that another one has passed.
func (o *opening) stands(ctx context.Context) error {
	if o.load.Stands == nil {
		return nil
	}
	return o.load.Stands(ctx)
}

// begin writes the epoch's first entry; with it the shard is open.
func (o *opening) begin(ctx context.Context) error {
	at, err := ask(ctx, o.e, "open", dibs.EffectUnknown, func(v *server) (dibs.Cursor, error) {
		// The step was carried out before: it came twice.
		if s := v.mem.shards[o.id]; s != nil && s.state == stateOpen && s.token == o.token {
			return dibs.Cursor{Epoch: o.load.Epoch, Seq: 1}, nil
		}
		s, err := o.loading(v)
		if err != nil {
			return dibs.Cursor{}, err
		}
		if err := v.write(o.id, s, dibs.Entry{Kind: dibs.EntryOpen, At: v.now(), Prev: o.last}, nil); err != nil {
			return dibs.Cursor{}, err
		}
		v.mem.journals[o.id].gone = time.Time{}
		s.state, s.left, s.moved, s.def, s.values, s.free = stateOpen, o.left, o.moved, o.def, o.load.Items, o.free()
		s.refs = maps.Clone(o.refs)
		s.claims, s.users = map[dibs.Cursor]*dibs.Holding{}, map[string][]*dibs.Holding{}
		slices.SortStableFunc(o.claims, func(a, b dibs.Holding) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Seq, b.Seq))
		})
		for _, h := range o.claims {
			s.hold(h)
		}
		v.scene.story.tell("%s: %s has opened shard %s at %s, %d left", v.name, o.e.p.name, o.id, s.head, s.left)
		return s.head, nil
	})
	if err == nil {
		o.e.saw(o.id, at)
		o.e.signal()
	}
	return err
}

// Retire forgets a shard; see dibs.Engine.
func (e *engine) Retire(ctx context.Context, id dibs.ShardID) error {
	_, err := ask(ctx, e, "retire", dibs.EffectUnknown, func(v *server) (none, error) { return none{}, v.retire(id, e.p.name) })
	return err
}

// JournalShards lists the shards that have entries or are held; see dibs.Journal.
func (e *engine) JournalShards(ctx context.Context) ([]dibs.ShardID, error) {
	listed, err := ask(ctx, e, "list", dibs.EffectNone, func(v *server) (map[dibs.ShardID]int64, error) {
		return maps.Clone(v.mem.listed), nil
	})
	if err != nil {
		return nil, err
	}
	if err := e.listHeld(ctx, listed); err != nil {
		return nil, err
	}
	var have []dibs.ShardID
	for _, id := range slices.SortedFunc(maps.Keys(listed), compareShards) {
		type rest struct{ entries, shard, stream bool }
		r, err := ask(ctx, e, "exists", dibs.EffectNone, func(v *server) (rest, error) {
			j, there := v.stream(id)
			return rest{len(j.entries) > 0, v.mem.shards[id] != nil, there}, nil
		})
		if err != nil {
			return nil, err
		}
		if r.entries || r.shard {
			have = append(have, id)
			continue
		}
		if r.stream {
			// It expires by itself.
			continue
		}
		if err := e.forget(ctx, id, listed[id]); err != nil {
			return nil, err
		}
	}
	return have, nil
}

// listHeld lists what the server holds and this node has met, and the list lost.
func (e *engine) listHeld(ctx context.Context, listed map[dibs.ShardID]int64) error {
	e.mu.Lock()
	met := slices.SortedFunc(maps.Keys(e.seen), compareShards)
	e.mu.Unlock()
	for _, id := range met {
		if _, ok := listed[id]; ok || e.p.w.planted.ListedOnce {
			continue
		}
		step, err := ask(ctx, e, "list", dibs.EffectUnknown, func(v *server) (int64, error) {
			s := v.mem.shards[id]
			if s == nil {
				return 0, nil
			}
			v.mem.listed[id] = 2*int64(s.head.Epoch) + 1
			return v.mem.listed[id], nil
		})
		if err != nil {
			return err
		}
		if step > 0 {
			listed[id] = step
		}
	}
	return nil
}

// forget takes a shard off the list of which nothing is there.
func (e *engine) forget(ctx context.Context, id dibs.ShardID, step int64) error {
	_, err := ask(ctx, e, "forget", dibs.EffectUnknown, func(v *server) (none, error) {
		// A loader that listed the shard meanwhile did so under a later step.
		if v.mem.listed[id] == step {
			delete(v.mem.listed, id)
			v.scene.story.tell("%s: shard %s is off the list", v.name, id)
		}
		return none{}, nil
	})
	return err
}

func compareShards(a, b dibs.ShardID) int {
	return cmp.Or(cmp.Compare(a.Campaign, b.Campaign), cmp.Compare(a.Shard, b.Shard))
}
