package enginetest

import (
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
)

var itemChecks = []Check{
	{"items/each is granted once, in order, by its value", checkItemsOnce},
	{"items/a claim of several gets as many", checkItemsSeveral},
	{"items/the load gives the order and what is free", checkItemsFree},
	{"items/released ones are granted again", checkItemsReleased},
	{"items/restocked ones are granted after the others", checkItemsRestocked},
	{"items/withdrawn ones are not granted", checkItemsWithdrawn},
}

// seats makes n different item values.
func seats(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("seat-%02d", i)
	}
	return s
}

// only expects that a grant has exactly one item, and returns its value.
func (o *offer) only(g dibs.Grant) string {
	o.that(len(g.Items) == 1, "a claim of one item got %q", g.Items)
	return g.Items[0]
}

// checkItemsOnce checks that items are granted in the order of the load, each once,
// and that the answer has the value while the journal has the number. The ledger knows
// items by number; the user needs the value, such as a code, without another look-up.
func checkItemsOnce(r *rig) {
	all := seats(5)
	o := r.offerItems(all, nil)
	for i, want := range all {
		g := o.grant(fmt.Sprint("user-", i), 1, 1)
		equal(r, "item", o.only(g), want)
		o.replay(1, g)
	}
	o.soldOut("late", 1, 1, 0)
	for i, e := range o.journal(dibs.Cursor{Epoch: 1, Seq: 1}) {
		o.that(slices.Equal(e.Items, []uint32{uint32(i)}), "entry %v names items %v, want %d", e.Cursor, e.Items, i)
	}
	o.counts(0, 5)
}

// checkItemsSeveral checks claims of several items: such a claim gets all of them or
// is refused. A partial grant would be paid for and not be delivered.
func checkItemsSeveral(r *rig) {
	o := r.offerItems(seats(5), limit(4))
	g := o.grant("ann", 1, 3)
	o.that(slices.Equal(g.Items, seats(3)), "3 items are %q, want the first three", g.Items)
	o.soldOut("bob", 1, 3, 2)
	h := o.grant("bob", 1, 2)
	o.that(slices.Equal(h.Items, seats(5)[3:]), "2 items are %q, want the last two", h.Items)
	o.replay(1, g)
	o.replay(1, h)
	o.counts(0, 5)
}

// checkItemsFree checks that the load alone says which items are free and in which
// order. The ledger has four items with three of them free; an engine that takes every
// item of the list as free grants one that a claim has already.
func checkItemsFree(r *rig) {
	c := r.sale(nil)
	c.Stock = dibs.Stock{Kind: dibs.Codes, Total: 4, Pattern: "XXXX-XXXX"}
	l := newLedger(c, c.ShardOf("any"), 3, seats(4))
	// Item 1 is not free; the rest is granted in the order of the load.
	l.free = []uint32{3, 0, 2}
	o := r.openLedger(l)
	for i, want := range []string{"seat-03", "seat-00", "seat-02"} {
		equal(r, "item", o.only(o.grant(fmt.Sprint("user-", i), 1, 1)), want)
	}
	o.refuse("late", 1, 1, dibs.SoldOut)
}

// checkItemsReleased checks that an item whose claim was released is granted again, to
// one user. In which place of the order it comes back is the engine's choice.
func checkItemsReleased(r *rig) {
	o := r.offerItems(seats(3), nil)
	o.grant("ann", 1, 1)
	b := o.grant("bob", 1, 1)
	o.release(b)
	o.counts(2, 1)
	got := []string{o.only(o.grant("cid", 1, 1)), o.only(o.grant("dan", 1, 1))}
	slices.Sort(got)
	o.that(slices.Equal(got, seats(3)[1:]), "after the release of %q the rest is %q", b.Items, got)
	o.refuse("eve", 1, 1, dibs.SoldOut)
	// The first result names the item that has found another holder since.
	o.replay(1, b)
	o.settle(100)
}

// checkItemsRestocked checks that restocked items get the numbers that the ledger gave
// them and are granted after the others. The journal's entry names the numbers, so
// that a reader can tell which items the engine has taken over.
func checkItemsRestocked(r *rig) {
	o := r.offerItems(seats(1), nil)
	o.grant("ann", 1, 1)
	o.refuse("bob", 1, 1, dibs.SoldOut)
	o.restock("more", 2, "box-A", "box-B")
	o.counts(2, 1)
	equal(r, "item", o.only(o.grant("bob", 1, 1)), "box-A")
	equal(r, "item", o.only(o.grant("cid", 1, 1)), "box-B")
	o.refuse("dan", 1, 1, dibs.SoldOut)
	adjust := o.journal(dibs.Cursor{Epoch: 1, Seq: 2})[0]
	o.that(adjust.Kind == dibs.EntryAdjust && adjust.Quantity == 2 && adjust.Ref == "more" && slices.Equal(adjust.Items, []uint32{1, 2}),
		"the restock's entry is %+v", adjust)
	o.settle(100)
}

// checkItemsWithdrawn checks a withdrawal of items: the engine chooses which, its
// entry names them, and none of them is granted afterwards. The ledger learns of the
// choice by that entry alone.
func checkItemsWithdrawn(r *rig) {
	o := r.offerItems(seats(4), nil)
	o.grant("ann", 1, 1)
	o.withdraw("less", 2)
	o.counts(1, 1)
	adjust := o.journal(dibs.Cursor{Epoch: 1, Seq: 2})[0]
	o.that(adjust.Kind == dibs.EntryAdjust && adjust.Quantity == -2 && adjust.Ref == "less" && len(adjust.Items) == 2,
		"the withdrawal's entry is %+v", adjust)
	last := o.only(o.grant("bob", 1, 1))
	for _, n := range adjust.Items {
		o.that(last != fmt.Sprintf("seat-%02d", n), "the withdrawn item %q was granted", last)
	}
	o.refuse("cid", 1, 1, dibs.SoldOut)
	// The ledger refuses to settle an item that is not free.
	o.settle(100)
}
