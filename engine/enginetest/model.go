package enginetest

import (
	"slices"

	"github.com/dibs-dev/dibs"
)

// model is one shard as the contract describes it, in the plainest words: no batches,
// no concurrency, no durability. The random operations hold every answer of an engine
// against it.
//
// c is the definition obeyed, head the last entry's place, left what can be granted,
// grants all grants in the order of their places, refs the commands carried out, and
// entries the whole journal since the shard was opened. Where the contract leaves a
// choice to the engine, such as which items, the model takes the engine's choice over
// when it is a legal one. The model survives restarts unchanged but for the opening
// entry: a restart must change nothing else.
type model struct {
	c     *dibs.Campaign
	shard dibs.ShardID
	head  dibs.Cursor
	left  int64
	// values are all items by number, free which of them can be granted.
	values  []string
	free    map[uint32]bool
	grants  []*modelGrant
	refs    map[string]bool
	entries []dibs.Entry
}

// modelGrant is a grant with its key and the numbers of its items. Items in Grant are
// the values of the first result, which stay after a release.
type modelGrant struct {
	dibs.Grant
	key   uint64
	items []uint32
}

// newModel begins a shard that has its whole stock and no entry.
func newModel(c *dibs.Campaign, shard dibs.ShardID, stock int64, items []string) *model {
	m := &model{c: c, shard: shard, left: stock, values: slices.Clone(items), free: map[uint32]bool{}, refs: map[string]bool{}}
	for i := range items {
		m.free[uint32(i)] = true
	}
	return m
}

// preload takes over the claims of units that a ledger began with.
func (m *model) preload(l *ledger) {
	for _, h := range l.claims {
		m.grants = append(m.grants, &modelGrant{key: h.Key, Grant: grantOf(m.shard, h)})
	}
	m.left, m.head = l.left, l.position
}

// append adds an entry at the next place: the next seq of the epoch, or, for an
// opening, seq 1 of the next epoch with the place before it as Prev.
func (m *model) append(e dibs.Entry) dibs.Cursor {
	if e.Kind == dibs.EntryOpen {
		e.Prev = m.head
		m.head = dibs.Cursor{Epoch: m.head.Epoch + 1}
	}
	m.head.Seq++
	e.Cursor = m.head
	m.entries = append(m.entries, e)
	return m.head
}

// open begins the next epoch.
func (m *model) open(at int64) { m.append(dibs.Entry{Kind: dibs.EntryOpen, At: at}) }

// decide says what the answer to a claim is at a time. It changes nothing, and
// leaves place and items of a new grant out.
func (m *model) decide(now int64, req dibs.EngineClaim) dibs.Decision {
	var held int64
	var list []dibs.Position
	claims := 0
	// Newest first, as Held lists them. Released claims count as claims and are found by
	// their key, but hold nothing.
	for _, g := range slices.Backward(m.grants) {
		if g.UserID != req.UserID {
			continue
		}
		claims++
		if req.Key != 0 && g.key == req.Key {
			if g.Quantity != req.Quantity {
				return dibs.Decision{Outcome: dibs.KeyReused}
			}
			return dibs.Decision{Outcome: dibs.Granted, Replayed: true, Grant: g.Grant}
		}
		if !g.Released {
			held += g.Quantity
			list = append(list, g.Position)
		}
	}
	// The order of these cases is the contract's order of checks.
	switch {
	case m.c.State == dibs.PausedState:
		return dibs.Decision{Outcome: dibs.Paused}
	case m.c.State == dibs.EndedState:
		return dibs.Decision{Outcome: dibs.Ended}
	case now < m.c.StartsAt.UnixMilli():
		return dibs.Decision{Outcome: dibs.NotStarted}
	case now >= m.c.EndsAt.UnixMilli():
		return dibs.Decision{Outcome: dibs.Ended}
	case m.left < req.Quantity && !(m.c.LimitFirst() && held+req.Quantity > m.c.LimitPerUser):
		return dibs.Decision{Outcome: dibs.SoldOut, Remaining: m.left}
	case held+req.Quantity > m.c.LimitPerUser:
		return dibs.Decision{Outcome: dibs.LimitReached, Held: list[:min(len(list), dibs.MaxHeldListed)]}
	case claims >= dibs.MaxClaimsPerUser:
		return dibs.Decision{Outcome: dibs.TooManyClaims}
	}
	return dibs.Decision{Outcome: dibs.Granted}
}

// grant records a new grant with the items that the engine chose.
func (m *model) grant(at int64, req dibs.EngineClaim, items []uint32) dibs.Grant {
	e := dibs.Entry{Kind: dibs.EntryGrant, At: at, UserID: req.UserID, Key: req.Key, Reference: req.Reference, Quantity: req.Quantity, Items: items}
	if m.c.PayWithin > 0 {
		e.PayBy = at + m.c.PayWithin.Milliseconds()
	}
	m.left -= req.Quantity
	g := &modelGrant{key: req.Key, items: items, Grant: dibs.Grant{
		Position: dibs.Position{ShardID: m.shard, Cursor: m.append(e)},
		UserID:   req.UserID, Quantity: req.Quantity, At: at, PayBy: e.PayBy,
	}}
	for _, n := range items {
		delete(m.free, n)
		g.Items = append(g.Items, m.values[n])
	}
	m.grants = append(m.grants, g)
	return g.Grant
}

// find returns the grant at a place, nil for none.
func (m *model) find(at dibs.Cursor) *modelGrant {
	for _, g := range m.grants {
		if g.Cursor == at {
			return g
		}
	}
	return nil
}

// release gives a grant back, once.
func (m *model) release(at int64, g *modelGrant) {
	if g.Released {
		return
	}
	g.Released = true
	m.left += g.Quantity
	for _, n := range g.items {
		m.free[n] = true
	}
	m.append(dibs.Entry{Kind: dibs.EntryRelease, At: at, Quantity: g.Quantity, Items: g.items, Target: g.Cursor})
}

// restock adds stock by a command, once by its ref. The new items get the numbers
// after the last one.
func (m *model) restock(at int64, a dibs.Adjustment) {
	if m.refs[a.Ref] {
		return
	}
	m.refs[a.Ref] = true
	m.left += a.Delta
	e := dibs.Entry{Kind: dibs.EntryAdjust, At: at, Quantity: a.Delta, Ref: a.Ref}
	for _, v := range a.Items {
		n := uint32(len(m.values))
		m.values = append(m.values, v)
		m.free[n] = true
		e.Items = append(e.Items, n)
	}
	m.append(e)
}

// withdraw takes stock away, with the items that the engine chose. The caller has
// checked that as much is left and that the items are free.
func (m *model) withdraw(at int64, a dibs.Adjustment, items []uint32) {
	m.refs[a.Ref] = true
	m.left += a.Delta
	for _, n := range items {
		delete(m.free, n)
	}
	m.append(dibs.Entry{Kind: dibs.EntryAdjust, At: at, Quantity: a.Delta, Ref: a.Ref, Items: items})
}

// granted counts the units granted and not released.
func (m *model) granted() int64 {
	var n int64
	for _, g := range m.grants {
		if !g.Released {
			n += g.Quantity
		}
	}
	return n
}

// numbers returns the numbers of item values; false when one is not free, is
// named twice, or does not exist.
func (m *model) numbers(values []string) ([]uint32, bool) {
	var items []uint32
	for _, v := range values {
		i := slices.Index(m.values, v)
		if i < 0 || !m.free[uint32(i)] || slices.Contains(items, uint32(i)) {
			return nil, false
		}
		items = append(items, uint32(i))
	}
	return items, true
}
