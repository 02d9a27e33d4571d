package sqlledger

import (
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs"
)

// TestEachEpoch: the ranges of the epochs cover what lies between two positions,
// and nothing else.
func TestEachEpoch(t *testing.T) {
	const end = ^uint32(0)
	for _, c := range []struct {
		from, to dibs.Cursor
		want     string
	}{
		{dibs.Cursor{Epoch: 2, Seq: 5}, dibs.Cursor{Epoch: 2, Seq: 9}, "[2 5 9]"},
		{dibs.Cursor{Epoch: 2, Seq: 5}, dibs.Cursor{Epoch: 4, Seq: 1}, fmt.Sprintf("[2 5 %d][3 0 %d][4 0 1]", end, end)},
	} {
		got := ""
		if err := eachEpoch(c.from, c.to, func(epoch uint16, after, last uint32) error {
			got += fmt.Sprint([]any{epoch, after, last})
			return nil
		}); err != nil || got != c.want {
			t.Errorf("from %s to %s: %s, %v", c.from, c.to, got, err)
		}
	}
}
