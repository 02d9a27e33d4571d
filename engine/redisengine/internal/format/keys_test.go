package format

import (
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
)

// Places and shards are read as they were written, and nothing else is read.
func TestPlacesOfTheStream(t *testing.T) {
	for _, c := range []dibs.Cursor{{}, {Epoch: 1, Seq: 2}, {Epoch: dibs.MaxEpoch, Seq: 1<<32 - 1}} {
		if got, err := StreamPlace(StreamID(c)); err != nil || got != c {
			t.Errorf("%v becomes %v, %v", c, got, err)
		}
	}
	for _, id := range []string{"", "1", "1-", "-1", "1-x", "4096-1", "1-4294967296", "1-2-3"} {
		if _, err := StreamPlace(id); !errors.Is(err, dibs.ErrCorrupt) {
			t.Errorf("the id %q is %v", id, err)
		}
	}
	for _, member := range []string{"", "1", "1:", ":1", "1:256", "4294967296:1", "x:1"} {
		if _, err := ShardOf(member); !errors.Is(err, dibs.ErrCorrupt) {
			t.Errorf("the shard %q is %v", member, err)
		}
	}
}
