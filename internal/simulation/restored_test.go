package simulation

import (
	"testing"

	"github.com/dibs-dev/dibs"
)

// TestForget: of an offer whose ledger went back the book keeps the yeses that the ledger
// has, without what was said of them after the grant, and all of other offers.
func TestForget(t *testing.T) {
	b := newBook()
	o, other := &offer{id: "one", changes: []*stockChange{{ref: "r", done: true}}}, &offer{id: "other"}
	says := func(o *offer, at uint32) *request {
		r := b.ask(&request{user: "u", key: "k", offer: o})
		claim := dibs.Claim{Position: dibs.Position{Cursor: dibs.Cursor{Epoch: 1, Seq: at}}}
		y := b.note(r, &dibs.Result{Claim: &claim})
		y.paid, y.paying = true, true
		return r
	}
	kept, lost, apart := says(o, 1), says(o, 2), says(other, 2)
	b.forget(o, func(y *yes) bool { return y.claim.Position.Seq == 1 })
	for name, c := range map[string]struct {
		r          *request
		yeses      int
		paid, sure bool
	}{
		"kept": {kept, 1, false, false}, "lost": {lost, 0, false, false}, "another offer's": {apart, 1, true, true},
	} {
		yeses, maybe := c.r.told()
		if len(yeses) != c.yeses || maybe == c.sure || len(yeses) > 0 && (yeses[0].paid != c.paid || !yeses[0].paying) {
			t.Errorf("%s: %d yeses, maybe %v, want %d: %+v", name, len(yeses), maybe, c.yeses, yeses)
		}
	}
	if o.changes[0].done {
		t.Error("a stock change is taken for known")
	}
}
