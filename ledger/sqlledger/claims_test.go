package sqlledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"
)

func position(campaign uint32, shard uint8, epoch uint16, seq uint32) dibs.Position {
	return dibs.Position{ShardID: dibs.ShardID{Campaign: campaign, Shard: shard}, Cursor: dibs.Cursor{Epoch: epoch, Seq: seq}}
}

// TestRuns: positions are divided by epoch and shard, in order, each once.
func TestRuns(t *testing.T) {
	at := []dibs.Position{position(2, 0, 1, 5), position(1, 1, 1, 2), position(1, 0, 2, 9), position(1, 0, 1, 3), position(1, 0, 2, 1), position(1, 0, 2, 9)}
	before := slices.Clone(at)
	got := ""
	for _, r := range runsOf(at) {
		got += fmt.Sprintf("%s %d %v; ", r.shard, r.epoch, r.seqs)
	}
	if want := "1/0 1 [3]; 1/0 2 [1 9]; 1/1 1 [2]; 2/0 1 [5]; "; got != want {
		t.Errorf("the runs are %s", got)
	}
	if !slices.Equal(at, before) {
		t.Error("the caller's positions have changed")
	}
}

// TestRunParts: parts are as long as a power of two, and name each seq.
func TestRunParts(t *testing.T) {
	for n, want := range map[int]string{1: "[1]", 3: "[4]", 512: "[512]", 1030: "[512 512 8]"} {
		r := run{}
		for i := range n {
			r.seqs = append(r.seqs, int64(i))
		}
		var lengths []int
		named := make(map[any]bool)
		if err := r.each(func(seqs []any) error {
			lengths = append(lengths, len(seqs))
			for _, seq := range seqs {
				named[seq] = true
			}
			return nil
		}); err != nil || fmt.Sprint(lengths) != want || len(named) != n {
			t.Errorf("%d seqs are parts of %v with %d seqs, %v", n, lengths, len(named), err)
		}
	}
}

// TestForgedClaimCursor: no part of a cursor is beyond its column.
func TestForgedClaimCursor(t *testing.T) {
	forged, err := cursorText(claimCursor{Campaign: 1<<32 - 1, Epoch: 1<<16 - 1, Seq: 7})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readClaimCursor(dibs.Page{Cursor: forged}, claimCursor{})
	if err != nil || got.Campaign != dibs.MaxCampaignNumber+1 || got.Epoch != dibs.MaxEpoch+1 || got.Seq != 7 {
		t.Errorf("it is read as %+v, %v", got, err)
	}
}
