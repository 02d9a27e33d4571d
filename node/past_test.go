package node_test

import (
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
)

// ended publishes sales until one is on a deployment, and ends that one, in which ann and bob
// have a claim each that is settled. It returns their claims.
func (s *several) ended(prefix string, number int) (campaign string, claims []string) {
	s.Helper()
	on := s.publish(prefix, 8)
	if len(on[number]) == 0 {
		s.Fatalf("the campaigns are on %v", on)
	}
	campaign = on[number][0]
	for _, user := range []string{"ann", "bob"} {
		r, err := s.claim(campaign, user)
		if err != nil || r.Outcome != dibs.Granted {
			s.Fatalf("%s wants of %s: %s, %v", user, campaign, r.Outcome, err)
		}
		claims = append(claims, r.Claim.ID)
	}
	s.whole()
	if _, err := s.node.Campaigns.End(s.Context(), campaign); err != nil {
		s.Fatal(err)
	}
	return campaign, claims
}

// refunded refunds a claim with its unit, and waits until nothing is left for the engine to do.
func (s *several) refunded(claim string) {
	s.Helper()
	if _, _, err := s.node.Orders.Refund(s.Context(), claim, dibs.RefundSpec{Restock: true}, "refund of "+claim); err != nil {
		s.Fatal(err)
	}
	s.until("the unit that came back waits for no engine", func() bool {
		waiting, err := s.node.Ledger.Commands(s.Context(), 0, 10)
		if err != nil {
			s.Fatal(err)
		}
		return len(waiting) == 0
	})
}

// TestAnEndedCampaignIsAbandoned gives up the shard of a campaign that is over, whose server is
// lost for good. From then on the ledger answers for it.
func TestAnEndedCampaignIsAbandoned(t *testing.T) {
	s := newSeveral(t, 2)
	s.open(0, 1)
	over, claims := s.ended("c", 1)
	s.redis[0].Kill()
	s.until("it is given up", func() bool {
		_, err := s.node.Campaigns.AbandonShard(t.Context(), over, 0, campaigns.Abandonment{Yes: true})
		if err != nil && !errors.Is(err, dibs.ErrInvalidState) {
			t.Fatal(err)
		}
		return err == nil
	})
	s.until("a yes from before is repeated", func() bool {
		r, err := s.claim(over, "ann")
		return err == nil && r.Replayed
	})
	s.refunded(claims[0])
	report, err := s.node.Audit.Verify(t.Context(), over)
	if err != nil || !report.OK {
		t.Errorf("%+v, %v", report, err)
	}
}
