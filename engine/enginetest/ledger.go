package enginetest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
)

// ledger keeps one shard as the SQL ledger does, in memory. Settling checks every
// promise that a journal can break.
//
// epoch is that of the load handed out last, position the place settled last, left
// what is left at that position. claims are settled grants in the order of their
// places, and byUser has the same by their user. Like the SQL ledger it moves first
// for a release and a restock, and by the journal for a grant and a withdrawal, so
// left is never below what the engine can still grant plus the grants that wait to be
// settled.
type ledger struct {
	campaign *dibs.Campaign
	shard    dibs.ShardID
	epoch    uint16
	position dibs.Cursor
	left     int64
	// items are the values by number, free those that no claim has.
	items  []string
	free   []uint32
	claims []*dibs.Holding
	byUser map[string][]*dibs.Holding
	// refs are the settled withdrawals, ahead those of them whose turn has not come, and
	// restocks the recorded restocks.
	refs            []string
	ahead, restocks map[string]bool
	// moved is the units that left by transfers, less those that came.
	moved int64
}

func newLedger(c *dibs.Campaign, shard dibs.ShardID, stock int64, items []string) *ledger {
	l := &ledger{
		campaign: c, shard: shard, left: stock, items: slices.Clone(items),
		byUser: map[string][]*dibs.Holding{}, restocks: map[string]bool{}, ahead: map[string]bool{},
	}
	for i := range items {
		l.free = append(l.free, uint32(i))
	}
	return l
}

// load raises the epoch and returns the shard as it stands. The load shares nothing
// with the ledger: the engine may keep it.
func (l *ledger) load() *dibs.ShardLoad {
	l.epoch++
	load := &dibs.ShardLoad{
		Epoch: l.epoch, Position: l.position, StockLeft: l.left,
		Items: slices.Clone(l.items), FreeItems: slices.Clone(l.free), Refs: slices.Clone(l.refs), Moved: l.moved,
	}
	for _, h := range l.claims {
		c := *h
		c.Items = slices.Clone(h.Items)
		load.Holdings = append(load.Holdings, c)
	}
	return load
}

// claim returns a settled claim, nil when there is none.
func (l *ledger) claim(at dibs.Cursor) *dibs.Holding {
	// Claims are settled in order.
	i, ok := slices.BinarySearchFunc(l.claims, at, func(h *dibs.Holding, c dibs.Cursor) int {
		return cmp.Or(cmp.Compare(h.Epoch, c.Epoch), cmp.Compare(h.Seq, c.Seq))
	})
	if !ok {
		return nil
	}
	return l.claims[i]
}

// release marks a settled claim released and takes its stock back, once.
func (l *ledger) release(at dibs.Cursor) error {
	h := l.claim(at)
	if h == nil {
		return fmt.Errorf("the ledger has no claim at %v to release", at)
	}
	if h.Released {
		return nil
	}
	h.Released = true
	l.left += h.Quantity
	l.free = append(l.free, h.Items...)
	return nil
}

// restock adds stock and returns the engine's command. The command carries the epoch
// in which the ledger counted the stock: a later load has it already, and the engine
// must then refuse the command as stale. New items get the numbers after the last one.
func (l *ledger) restock(ref string, n int64, items []string) dibs.Adjustment {
	a := dibs.Adjustment{Shard: l.shard, Epoch: l.epoch, Ref: ref, Delta: n}
	if l.campaign.HasItems() {
		a.FirstItem, a.Items = uint32(len(l.items)), slices.Clone(items)
		for i := range items {
			l.free = append(l.free, a.FirstItem+uint32(i))
		}
		l.items = append(l.items, items...)
	}
	l.left += n
	l.restocks[ref] = true
	if _, ok := dibs.TransferOf(ref); ok {
		l.moved -= n
	}
	return a
}

// settle moves one entry into the ledger; an error says which promise the
// journal breaks.
func (l *ledger) settle(e *dibs.Entry) error {
	if err := l.continues(e); err != nil {
		return err
	}
	l.position = e.Cursor
	switch e.Kind {
	case dibs.EntryOpen:
		return nil
	case dibs.EntryGrant:
		return l.settleGrant(e)
	case dibs.EntryRelease:
		return l.settleRelease(e)
	case dibs.EntryAdjust:
		return l.settleAdjust(e)
	}
	return fmt.Errorf("entry %v has the unknown kind %d", e.Cursor, e.Kind)
}

// continues returns an error when an entry does not follow the settled position: the
// next seq of the same epoch, or an opening of a later epoch that names the position
// as its predecessor.
func (l *ledger) continues(e *dibs.Entry) error {
	if e.Kind == dibs.EntryOpen {
		if e.Seq != 1 || e.Epoch <= l.position.Epoch || e.Prev != l.position {
			return fmt.Errorf("entry %v opens an epoch after %v, but the entry before it is %v", e.Cursor, e.Prev, l.position)
		}
		return nil
	}
	if want := (dibs.Cursor{Epoch: l.position.Epoch, Seq: l.position.Seq + 1}); e.Cursor != want {
		return fmt.Errorf("gap: entry %v follows %v", e.Cursor, l.position)
	}
	return nil
}

// settleGrant records a grant, and checks what each grant must keep: a key is granted
// once for each user, the units held stay within the limit, the claims of a user
// within MaxClaimsPerUser, and the stock does not go below 0. The limit is that of the
// newest definition, which the checks only ever raise.
func (l *ledger) settleGrant(e *dibs.Entry) error {
	held := e.Quantity
	for _, h := range l.byUser[e.UserID] {
		if !h.Released {
			held += h.Quantity
		}
		if e.Key != 0 && h.Key == e.Key {
			return fmt.Errorf("key %d of user %s was granted twice: at %v and %v", e.Key, e.UserID, h.Cursor, e.Cursor)
		}
	}
	if held > l.campaign.LimitPerUser {
		return fmt.Errorf("user %s holds %d at %v, above the limit of %d", e.UserID, held, e.Cursor, l.campaign.LimitPerUser)
	}
	if n := len(l.byUser[e.UserID]); n >= dibs.MaxClaimsPerUser {
		return fmt.Errorf("user %s has %d claims before the one at %v, at most %d are granted", e.UserID, n, e.Cursor, dibs.MaxClaimsPerUser)
	}
	if l.left -= e.Quantity; l.left < 0 || e.Quantity < 1 {
		return fmt.Errorf("oversold: the grant of %d at %v leaves %d", e.Quantity, e.Cursor, l.left)
	}
	h := &dibs.Holding{
		Cursor: e.Cursor, UserID: e.UserID, Key: e.Key, Quantity: e.Quantity,
		At: e.At, PayBy: e.PayBy, Items: slices.Clone(e.Items),
	}
	l.claims = append(l.claims, h)
	l.byUser[e.UserID] = append(l.byUser[e.UserID], h)
	return l.takeItems(e, e.Quantity)
}

// takeItems removes an entry's items from the free ones. n is how many the entry must
// name; a stock of units has none.
func (l *ledger) takeItems(e *dibs.Entry, n int64) error {
	if !l.campaign.HasItems() {
		n = 0
	}
	if int64(len(e.Items)) != n {
		return fmt.Errorf("entry %v of %d units has %d items", e.Cursor, e.Quantity, len(e.Items))
	}
	for _, item := range e.Items {
		i := slices.Index(l.free, item)
		if i < 0 {
			return fmt.Errorf("entry %v takes item %d, which is not free", e.Cursor, item)
		}
		l.free = slices.Delete(l.free, i, i+1)
	}
	return nil
}

// settleRelease checks that the ledger released the claim before the engine did. It
// moves no stock: release has moved it.
func (l *ledger) settleRelease(e *dibs.Entry) error {
	h := l.claim(e.Target)
	if h == nil || !h.Released {
		return fmt.Errorf("entry %v releases %v, which the ledger has not released", e.Cursor, e.Target)
	}
	return nil
}

// settleAdjust settles a change of stock. A restock was counted when the ledger made
// it, and must be known by its ref; a withdrawal was the engine's decision, takes
// effect here, and has a ref that is new.
func (l *ledger) settleAdjust(e *dibs.Entry) error {
	if e.Quantity >= 0 {
		if !l.restocks[e.Ref] {
			return fmt.Errorf("entry %v restocks by %q, which the ledger has not recorded", e.Cursor, e.Ref)
		}
		return nil
	}
	if l.ahead[e.Ref] {
		delete(l.ahead, e.Ref)
		return nil
	}
	if slices.Contains(l.refs, e.Ref) {
		return fmt.Errorf("entry %v withdraws by %q a second time", e.Cursor, e.Ref)
	}
	return l.withdraw(e)
}

// settleAhead settles a withdrawal of units before its turn.
func (l *ledger) settleAhead(ref string, units int64) error {
	l.ahead[ref] = true
	return l.withdraw(&dibs.Entry{Ref: ref, Quantity: -units})
}

// withdraw takes what the engine decided to withdraw.
func (l *ledger) withdraw(e *dibs.Entry) error {
	l.refs = append(l.refs, e.Ref)
	if _, ok := dibs.TransferOf(e.Ref); ok {
		l.moved -= e.Quantity
	}
	if l.left += e.Quantity; l.left < 0 {
		return fmt.Errorf("the withdrawal of %d at %v leaves %d", -e.Quantity, e.Cursor, l.left)
	}
	return l.takeItems(e, -e.Quantity)
}
