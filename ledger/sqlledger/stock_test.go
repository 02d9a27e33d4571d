package sqlledger

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
)

// TestCommandFormat: commands that wait in the outbox outlive the program that
// wrote them.
func TestCommandFormat(t *testing.T) {
	for want, c := range map[string]command{
		`{"campaign":7,"shard":2,"epoch":3,"ref":"r","delta":2,"first_item":4,"items":["a","b"]}`: {
			Campaign: 7, Shard: 2, Epoch: 3, Ref: "r", Delta: 2, FirstItem: 4, Items: []string{"a", "b"},
		},
		`{"campaign":7,"shard":0,"epoch":3,"releases":[[3,9],[4,1]]}`: {Campaign: 7, Epoch: 3, Releases: [][2]uint32{{3, 9}, {4, 1}}},
	} {
		if text, err := json.Marshal(&c); err != nil || string(text) != want {
			t.Errorf("written as %s, %v", text, err)
		}
	}
}

// TestCheckRestock: which changes suit which stock.
func TestCheckRestock(t *testing.T) {
	for what, c := range map[string]struct {
		r    campaigns.Restock
		kind dibs.StockKind
		good bool
	}{
		"units":          {campaigns.Restock{Ref: "r", Delta: 2}, dibs.Units, true},
		"items":          {campaigns.Restock{Ref: "r", Delta: 2, Items: []string{"a", "b"}}, dibs.Items, true},
		"too few items":  {campaigns.Restock{Ref: "r", Delta: 2, Items: []string{"a"}}, dibs.Items, false},
		"items of units": {campaigns.Restock{Ref: "r", Delta: 1, Items: []string{"a"}}, dibs.Units, false},
		"nothing":        {campaigns.Restock{Ref: "r"}, dibs.Units, false},
		"less":           {campaigns.Restock{Ref: "r", Delta: -1}, dibs.Units, false},
	} {
		if err := checkRestock(c.r, c.kind); c.good != (err == nil) || err != nil && !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
