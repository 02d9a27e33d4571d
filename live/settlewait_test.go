package live_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// A settlement that is committed and reported as failed is found to be done: a
// node that is alone goes on behind it.
func TestASettlementThatWasCommittedAlthoughItFailed(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 10)
	p.Whole("sale")
	var failed, moved atomic.Int64
	f := func(ctx context.Context, batches []live.Batch) error {
		err := p.Ledger.Ledger.Settle(ctx, batches)
		switch {
		case err == nil && failed.CompareAndSwap(0, 1):
			return dibs.Unavail(dibs.EffectUnknown, testnode.ErrInjected)
		case errors.Is(err, dibs.ErrPositionMoved):
			moved.Add(1)
		}
		return err
	}
	p.Ledger.OnSettle.Store(&f)
	for _, user := range []string{"ann", "bob"} {
		res, err := p.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "sale", UserID: user, Key: "k"})
		if err != nil || res.Outcome != dibs.Granted {
			t.Fatalf("the claim of %s is %v, %v", user, res.Outcome, err)
		}
		if st := p.Whole("sale"); st.Granted != st.Confirmed {
			t.Errorf("%d are granted and %d confirmed", st.Granted, st.Confirmed)
		}
	}
	if st := p.Whole("sale"); st.Confirmed != 2 || failed.Load() != 1 || moved.Load() == 0 {
		t.Errorf("%d are confirmed, %d settlements were reported as failed, %d found the position moved", st.Confirmed, failed.Load(), moved.Load())
	}
}
