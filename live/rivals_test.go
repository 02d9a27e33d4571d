package live

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// A node insists on a shard that was refused for long, one time after the other, and on no other.
func TestRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rivals
		id, other := dibs.ShardID{Campaign: 1}, dibs.ShardID{Campaign: 2}
		elsewhere := fmt.Errorf("load: %w", dibs.ErrElsewhere)
		wants := func(what string, want bool) {
			t.Helper()
			if got := r.insists(id); got != want {
				t.Errorf("%s it insists %t", what, got)
			}
		}
		refuse := func(times int) {
			for range times {
				r.after(id, elsewhere)
				wait.Sleep(t.Context(), time.Second)
			}
		}
		wants("at first", false)
		refuse(10)
		wants("after ten seconds", false)
		refuse(2)
		wants("after twelve", true)
		if r.insists(other) {
			t.Error("it insists on another shard")
		}
		wait.Sleep(t.Context(), rivalryOver)
		wants("long after the last refusal", false)
		refuse(1)
		wants("at the first refusal of another rivalry", false)
		refuse(11)
		wants("when that has lasted too", true)
		r.after(id, nil)
		wants("once it has the shard", false)
		refuse(5)
		r.after(id, dibs.ErrNotFound)
		refuse(8)
		wants("after another answer in between", false)
	})
}
