package sqlledger_test

import (
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// TestEpochsEnd: a shard that has used up its epochs says so and stays.
func TestEpochsEnd(t *testing.T) {
	path, l, _, units := planted(t)
	raw(t, path, `UPDATE positions SET epoch = 4095`)
	for range 2 {
		_, err := l.LoadShard(t.Context(), units, dibs.ShardID{Campaign: units.Number}, live.Opener{})
		if !errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("load a shard past its last epoch: %v", err)
		}
	}
}
