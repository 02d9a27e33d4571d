package sqlledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
)

// TestUpgradeRefundsDue: payments that were due before there was an index of them are found by it, and after their refund
// no more.
func TestUpgradeRefundsDue(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx, at := t.Context(), time.UnixMilli(1_700_000_000_000).UTC()
		l := openAt(t, url)
		c := &dibs.Campaign{
			ID: "c", Kind: dibs.Sale, Title: "c", StartsAt: at, EndsAt: at.Add(time.Hour), State: dibs.Published, Stock: dibs.Stock{Kind: dibs.Units, Total: 3}, LimitPerUser: 1,
			Price: &dibs.Money{Amount: 500, Currency: "CNY"}, PayWithin: time.Minute, LatePayment: dibs.RefundDue, Shards: 1, Version: 1, CreatedAt: at, UpdatedAt: at,
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(l.InsertCampaign(ctx, c, nil))
		shard := dibs.ShardID{Campaign: c.Number}
		_, err := l.LoadShard(ctx, c, shard, live.Opener{})
		must(err)
		b := live.Batch{Campaign: c, Shard: shard, Fence: 1, To: dibs.Cursor{Epoch: 1, Seq: 3}, Entries: []dibs.Entry{{Cursor: dibs.Cursor{Epoch: 1, Seq: 1}, Kind: dibs.EntryOpen}}}
		for i := range 2 {
			b.Entries = append(b.Entries, dibs.Entry{Cursor: dibs.Cursor{Epoch: 1, Seq: uint32(i + 2)}, Kind: dibs.EntryGrant, UserID: fmt.Sprint("u", i), Quantity: 1, At: at.UnixMilli()})
		}
		must(l.Settle(ctx, []live.Batch{b}))
		late := dibs.Position{ShardID: shard, Cursor: b.Entries[2].Cursor}
		move := func(step dibs.Step, facts dibs.EventFacts) {
			t.Helper()
			moved, err := l.Move(ctx, [][]dibs.Move{{{Campaign: c, Position: late, Step: step, At: at.Add(time.Minute), EventFacts: facts}}})
			must(err)
			must(moved[0][0].Err)
		}
		move(dibs.StepCancel, dibs.EventFacts{})
		move(dibs.StepRefundDue, dibs.EventFacts{Ref: "late", Amount: c.Price})
		closeAll(t, l)
		raw(migrationsDown(t, url, 27)...)
		l = openAt(t, url)
		defer closeAll(t, l)
		due := func() []dibs.Claim {
			t.Helper()
			list, err := l.OrderList(ctx, orders.Filter{RefundDue: true}, dibs.Page{})
			must(err)
			return list.Items
		}
		if got := due(); len(got) != 1 || got[0].Position != late {
			t.Errorf("due: %+v", got)
		}
		move(dibs.StepRefund, dibs.EventFacts{})
		if got := due(); len(got) != 0 {
			t.Errorf("due after the refund: %+v", got)
		}
	})
}
