package sqlledger

import (
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// TestWithhold: an entry in quarantine keeps its own items from being free, and
// as many others as it has items that never were.
func TestWithhold(t *testing.T) {
	entry := dibs.Entry{Cursor: dibs.Cursor{Epoch: 1, Seq: 5}, Kind: dibs.EntryGrant, Items: []uint32{1, 99}}
	load := &dibs.ShardLoad{
		StockLeft: 2, Items: []string{"a", "b", "c", "d"}, FreeItems: []uint32{0, 1, 2, 3},
		Holdings: []dibs.Holding{{Cursor: dibs.Cursor{Epoch: 1, Seq: 2}}, {Cursor: entry.Cursor}},
	}
	withhold(load, []live.Quarantined{{Entry: entry}})
	if !slices.Equal(load.FreeItems, []uint32{0, 2}) {
		t.Errorf("free are %v", load.FreeItems)
	}
	if !slices.Equal(load.Holdings[1].Items, []uint32{1}) || load.Holdings[0].Items != nil {
		t.Errorf("the holdings are %+v", load.Holdings)
	}
}
