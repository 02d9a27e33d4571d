package enginetest

import (
	"fmt"

	"github.com/dibs-dev/dibs"
)

// ref makes up the next command's name.
func (p *player) ref() string {
	p.refs++
	return fmt.Sprintf("ref-%d", p.refs)
}

// playStock restocks, withdraws, repeats a command or sends a stale one. A repeated
// command of this epoch must change nothing and return nil; a repeated restock of an
// older epoch may also be refused as stale. A repeated withdrawal is known in every
// epoch.
func (p *player) playStock(x op) {
	switch x.name {
	case "restock":
		p.playRestock(1 + int64(x.a%4))
	case "staleRestock":
		if p.ledger.epoch > 1 {
			// The ledger has not counted this one: an engine that takes it has stock from nowhere.
			a := dibs.Adjustment{Shard: p.shard, Epoch: p.ledger.epoch - 1, Ref: p.ref(), Delta: 1}
			if p.c.HasItems() {
				a.FirstItem, a.Items = uint32(len(p.ledger.items)), []string{"stale " + a.Ref}
			}
			p.is(p.eng.Adjust(p.ctx, a), "a restock of an older epoch", dibs.ErrStale)
		}
	case "repeatRestock":
		if len(p.restocks) > 0 {
			a := p.restocks[int(x.a)%len(p.restocks)]
			err := p.eng.Adjust(p.ctx, a)
			if a.Epoch == p.ledger.epoch {
				p.is(err, "a repeated restock", nil)
			} else {
				p.is(err, "a repeated restock of an older epoch", nil, dibs.ErrStale)
			}
		}
	case "repeatWithdraw":
		if len(p.withdrawals) > 0 {
			// Often the newest one, which the ledger may not have settled yet.
			a := p.withdrawals[len(p.withdrawals)-1]
			if x.b%2 == 0 {
				a = p.withdrawals[int(x.a)%len(p.withdrawals)]
			}
			p.no(p.eng.Adjust(p.ctx, a), "repeat the withdrawal %q", a.Ref)
		}
	case "withdraw":
		p.playWithdraw(1 + int64(x.a%4))
	}
}

// playRestock restocks n units, or n new items, through the ledger.
func (p *player) playRestock(n int64) {
	ref := p.ref()
	var items []string
	if p.c.HasItems() {
		for i := range n {
			items = append(items, fmt.Sprintf("%s/%d", ref, i))
		}
	}
	a := p.restock(ref, n, items...)
	p.restocks = append(p.restocks, a)
	p.m.restock(p.decidedAt(), a)
}

// playWithdraw withdraws n units, which is refused when the model has less. Nothing
// may be taken then.
func (p *player) playWithdraw(n int64) {
	a := p.withdrawal(p.ref(), n)
	err := p.eng.Adjust(p.ctx, a)
	if n > p.m.left {
		p.is(err, fmt.Sprintf("a withdrawal of %d with %d left", n, p.m.left), dibs.ErrInvalidState)
		return
	}
	p.no(err, "withdraw %d with %d left", n, p.m.left)
	p.withdrawals = append(p.withdrawals, a)
	// The engine chooses the items; its entry tells which.
	var items []uint32
	if p.c.HasItems() {
		entries := p.journal(p.m.head)
		p.that(len(entries) == 1, "a withdrawal has %d entries", len(entries))
		items = entries[0].Items
		var values []string
		for _, i := range items {
			p.that(int(i) < len(p.m.values), "item %d does not exist", i)
			values = append(values, p.m.values[i])
		}
		_, free := p.m.numbers(values)
		p.that(free && int64(len(items)) == n, "a withdrawal of %d takes items %v, not all free", n, items)
	}
	p.m.withdraw(p.decidedAt(), a, items)
}
