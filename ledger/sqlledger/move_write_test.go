package sqlledger

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestStepRows: each step that is new is told once, and none that was there.
func TestStepRows(t *testing.T) {
	const claims = 300
	var changed []*lockedClaim
	for i := range claims {
		v := &lockedClaim{steps: 1}
		v.claim.Position = dibs.Position{ShardID: dibs.ShardID{Campaign: 1}, Cursor: dibs.Cursor{Epoch: 1, Seq: uint32(i)}}
		for n := range 3 {
			v.claim.Events = append(v.claim.Events, dibs.ClaimEvent{N: n + 1, At: time.UnixMilli(int64(i))})
		}
		changed = append(changed, v)
	}
	told := make(map[stepRef]bool)
	rows := stepRows(changed)
	for _, r := range rows {
		for _, st := range r.payload.([]stepRef) {
			if told[st] || st[4] < 2 {
				t.Fatalf("the step %v is told again", st)
			}
			told[st] = true
		}
	}
	if len(told) != 2*claims || len(rows) != 2 {
		t.Errorf("%d steps in %d rows", len(told), len(rows))
	}
}

// TestJustGivenBack: stock comes back by the change that releases or restocks a
// claim, and by no other.
func TestJustGivenBack(t *testing.T) {
	for what, c := range map[string]struct {
		before, after       dibs.Status
		restocked, restocks bool
		want                int
	}{
		"released":  {before: dibs.Pending, after: dibs.Released, want: 1},
		"confirmed": {before: dibs.Pending, after: dibs.Confirmed},
		"restocked": {before: dibs.Refunded, after: dibs.Refunded, restocks: true, want: 1},
		"refunded":  {before: dibs.Confirmed, after: dibs.Refunded},
		"shipped after it was restocked": {
			before: dibs.Refunded, after: dibs.Refunded, restocked: true, restocks: true,
		},
	} {
		v := &lockedClaim{status: c.before, restocked: c.restocked}
		v.claim.Status, v.claim.Restocked = c.after, c.restocks
		if got := len(justGivenBack([]*lockedClaim{v})); got != c.want {
			t.Errorf("%s: the stock comes back %d times", what, got)
		}
	}
}
