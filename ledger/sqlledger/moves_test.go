package sqlledger

import (
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestGroupIsWhole: when a move of a group is refused, none of its moves is
// made, and the claims are as they were.
func TestGroupIsWhole(t *testing.T) {
	c := &dibs.Campaign{PayWithin: time.Hour, LatePayment: dibs.Reclaim}
	at := time.UnixMilli(1_796_097_600_000)
	all := lockedClaims{}
	for seq := range uint32(2) {
		p := position(1, 0, 1, seq)
		all[p] = &lockedClaim{claim: dibs.Claim{Position: p, Status: dibs.Pending, Quantity: 1, PayBy: at.Add(time.Hour), CreatedAt: at}}
	}
	cancel := func(seq uint32) dibs.Move {
		return dibs.Move{Campaign: c, Position: position(1, 0, 1, seq), Step: dibs.StepCancel, At: at}
	}
	moved := all.move([]dibs.Move{cancel(0), cancel(9)})
	if !errors.Is(moved[0].Err, dibs.ErrConflict) || !errors.Is(moved[1].Err, dibs.ErrNotFound) {
		t.Errorf("the group returned %v and %v", moved[0].Err, moved[1].Err)
	}
	if v := all[position(1, 0, 1, 0)]; v.claim.Status != dibs.Pending || len(v.claim.Events) != 0 {
		t.Errorf("the claim is %+v", v.claim)
	}
	moved = all.move([]dibs.Move{cancel(0), cancel(1)})
	for i, m := range moved {
		if m.Err != nil || all[position(1, 0, 1, uint32(i))].claim.Status != dibs.Released {
			t.Errorf("move %d: %+v, %v", i, m.Claim, m.Err)
		}
	}
}
