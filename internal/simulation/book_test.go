package simulation

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// TestGivenUp: what an epoch began without was lost, if it had been decided by then.
func TestGivenUp(t *testing.T) {
	id, b := dibs.ShardID{Campaign: 1}, newBook()
	begun := time.Now()
	at := func(seq uint32, on time.Time) *decided {
		return &decided{Entry: dibs.Entry{Cursor: dibs.Cursor{Epoch: 1, Seq: seq}}, on: on}
	}
	kept, lost, later := at(5, begun), at(6, begun), at(6, begun.Add(time.Hour))
	if b.gaveUp(id, lost) {
		t.Error("given up before an epoch began")
	}
	b.settled([]live.Batch{{Shard: id, Entries: []dibs.Entry{
		{Kind: dibs.EntryOpen, Cursor: dibs.Cursor{Epoch: 2, Seq: 1}, Prev: dibs.Cursor{Epoch: 1, Seq: 5}},
	}}})
	if b.gaveUp(id, kept) || !b.gaveUp(id, lost) || b.gaveUp(id, later) {
		t.Errorf("kept: %v, lost: %v, decided later by the old server: %v; want false, true, false",
			b.gaveUp(id, kept), b.gaveUp(id, lost), b.gaveUp(id, later))
	}
}
