package format

import (
	"math"
	"testing"

	"github.com/dibs-dev/dibs"
)

// A claim is read from an answer as it was loaded, with a quantity that fits into the
// mark and with one that does not.
func TestRecords(t *testing.T) {
	shard := dibs.ShardID{Campaign: 7, Shard: 3}
	for _, h := range []dibs.Holding{
		{Cursor: dibs.Cursor{Epoch: 1, Seq: 2}, Key: 77, Quantity: 1},
		{Cursor: dibs.Cursor{Epoch: dibs.MaxEpoch, Seq: math.MaxUint32}, Key: math.MaxUint64, Quantity: spelt - 1, Released: true},
		{Cursor: dibs.Cursor{Epoch: dibs.MaxEpoch, Seq: 9}, Quantity: spelt, Released: true},
		{Cursor: dibs.Cursor{Epoch: 2, Seq: 1}, Quantity: math.MaxUint32},
	} {
		h.UserID, h.At = "ann", 1_795_000_000_123
		answer := AppendRecord(AppendMS(nil, h.At), &h)
		items := AppendItem(AppendItem(nil, 4, "seat 4"), 5, "")
		g, err := GrantOf(shard, h.UserID, string(append(answer, items...)), 60_000)
		if err != nil || g.ShardID != shard || g.Cursor != h.Cursor || g.UserID != h.UserID || g.Quantity != h.Quantity ||
			g.At != h.At || g.PayBy != h.At+60_000 || g.Released != h.Released || len(g.Items) != 2 || g.Items[0] != "seat 4" {
			t.Errorf("%+v is read as %+v, %v", h, g, err)
		}
		for n := range answer {
			if g, rest, err := CutGrant(shard, h.UserID, string(answer[:n]), 0); err == nil {
				t.Errorf("%d bytes of %+v are read as %+v, with %q behind it", n, h, g, rest)
			}
		}
		if g, _, err := CutGrant(shard, h.UserID, string(answer), 0); err != nil || g.PayBy != 0 {
			t.Errorf("without a time to pay, it is %d, %v", g.PayBy, err)
		}
	}
}
