package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/node"
)

// A user who claims and cancels is stopped after MaxClaimsPerUser claims, and
// their late payment is due back; the first results are found all the same.
func TestAUserWhoClaimsAndCancelsIsStopped(t *testing.T) {
	r := newRig(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond, SettleEvery: time.Millisecond})
	r.publish(r.unpaid("phone", 2, dibs.Reclaim))
	svc := r.node.Service
	late := r.wants(dibs.Granted, "phone", "u0", "late").Claim.ID
	r.expire("phone")
	var res dibs.Result
	granted := 1
	for res.Outcome == dibs.Granted && granted <= dibs.MaxClaimsPerUser {
		key := fmt.Sprint("k", granted)
		// A claim that was cancelled may fill the limit until its command is sent.
		r.eventually("the claim before is released", func() bool {
			res = r.claim("phone", "u0", key, 1)
			return res.Outcome != dibs.LimitReached
		})
		if res.Outcome == dibs.Granted {
			granted++
			if _, _, err := svc.Orders.Cancel(t.Context(), res.Claim.ID, "u0", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if res.Outcome != dibs.TooManyClaims || granted != dibs.MaxClaimsPerUser {
		t.Fatalf("after %d claims: %+v", granted, res)
	}
	p, zh := api.ProblemOfResult(&res, false), api.ProblemOfResult(&res, true)
	if p.Status != 409 || p.Code != 30015 || p.Retryable || p.Reason != "too_many_claims" || !strings.Contains(p.Detail, "at most 1000 claims") ||
		!strings.Contains(zh.Detail, "1000 次") {
		t.Errorf("the refusal is %+v and %+v", p, zh)
	}
	if st := r.stats("phone"); st.Refused["too_many_claims"] != 1 {
		t.Errorf("the refusals are counted as %v", st.Refused)
	}
	if c, _ := r.confirm(late, "pay-1"); c.ID != late || c.Status != dibs.Released || !c.Payment.Due {
		t.Errorf("the late payment: %+v", c)
	}
	r.wants(dibs.Granted, "phone", "u1", "k")
	r.verify()
	r.reopen()
	r.wants(dibs.TooManyClaims, "phone", "u0", "another")
	if again := r.claim("phone", "u0", "k1", 1); !again.Replayed || again.Claim.Status != dibs.Released {
		t.Errorf("the first cancelled claim again: %+v", again)
	}
	r.verify()
}
