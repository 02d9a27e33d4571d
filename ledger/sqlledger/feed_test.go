package sqlledger

import (
	"encoding/json"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// grantsFrom makes a batch of an opening entry and n grants.
func grantsFrom(n int) *live.Batch {
	b := &live.Batch{Shard: dibs.ShardID{Campaign: 7, Shard: 2}, From: dibs.Cursor{Epoch: 3, Seq: 9}}
	b.Entries = []dibs.Entry{{Cursor: dibs.Cursor{Epoch: 4, Seq: 1}, Kind: dibs.EntryOpen}}
	for i := range n {
		b.Entries = append(b.Entries, dibs.Entry{Cursor: dibs.Cursor{Epoch: 4, Seq: uint32(i + 2)}, Kind: dibs.EntryGrant, At: int64(i)})
	}
	return b
}

// TestGrantRows: rows continue one another, from the batch's begin to its last
// grant, and none tells of more grants than one row may.
func TestGrantRows(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, feedRowMost: 1, feedRowMost + 1: 2, 3 * feedRowMost: 3} {
		b := grantsFrom(n)
		rows := grantRows(nil, b)
		if len(rows) != want {
			t.Errorf("%d grants are %d rows", n, len(rows))
		}
		from, last := [2]uint32{3, 9}, [2]uint32{4, uint32(n + 1)}
		for i, r := range rows {
			g := r.payload.(grantRange)
			if g.From != from || i > 0 && g.To[1]-g.From[1] > feedRowMost {
				t.Errorf("row %d of %d is from %v to %v", i, want, g.From, g.To)
			}
			from = g.To
		}
		if n > 0 && from != last {
			t.Errorf("the rows of %d grants end at %v", n, from)
		}
	}
}

// TestFeedFormat: rows that older programs have written must be read.
func TestFeedFormat(t *testing.T) {
	row := grantRows(nil, grantsFrom(1))[0]
	text, err := json.Marshal(row.payload)
	if want := `{"campaign":7,"shard":2,"from":[3,9],"to":[4,2]}`; err != nil || string(text) != want {
		t.Errorf("grants are written as %s, %v", text, err)
	}
	text, err = json.Marshal([]stepRef{{7, 2, 4, 11, 3}})
	if want := `[[7,2,4,11,3]]`; err != nil || string(text) != want {
		t.Errorf("steps are written as %s, %v", text, err)
	}
	for kind, want := range map[string]string{feedGrants: "grants", feedSteps: "steps", feedCampaign: "campaign", feedPush: "push"} {
		if kind != want {
			t.Errorf("the kind %s is written as %s", want, kind)
		}
	}
}
