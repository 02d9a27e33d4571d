package node_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/live"
)

// past is a campaign that is over.
type past struct {
	id string
	// paid is a claim of payer's, late one of bob's that was released since he did not pay.
	payer, paid, late string
}

// pastOn publishes sales until one is on a deployment, of which a payer and bob claim, and ends
// it. sells is one on the first deployment that goes on.
func (s *several) pastOn(number int) (p past, sells string) {
	s.Helper()
	now, units, soon := time.Now(), int64(20), dibs.Duration(3*time.Second)
	for i := 0; p.id == "" || sells == ""; i++ {
		id := fmt.Sprint("c-", i)
		on := s.publishOver(dibs.CampaignSpec{
			ID: id, Kind: dibs.Sale, Title: "Phone", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
			Stock: dibs.StockSpec{Units: &units}, PayWithin: &soon, Shards: new(1),
		})
		switch {
		case on[number] == 1 && p.id == "":
			p.id = id
		case on[1] == 1 && sells == "":
			sells = id
		default:
			s.end(id)
		}
	}
	claim := func(user string) string {
		s.Helper()
		r, err := s.claim(p.id, user)
		if err != nil || r.Outcome != dibs.Granted {
			s.Fatalf("%s wants of %s: %s, %v", user, p.id, r.Outcome, err)
		}
		return r.Claim.ID
	}
	p.late = claim("bob")
	s.until("the unit of who has not paid is back", func() bool {
		c, err := s.node.Claims.Find(s.Context(), p.late)
		return err == nil && c.Status == dibs.Released
	})
	// On a slow machine a payment may come late: then the next one pays.
	for i, inTime := 0, false; !inTime; i++ {
		if i == 5 {
			s.Fatal("nobody has paid in time")
		}
		p.payer = fmt.Sprint("ann-", i)
		p.paid = claim(p.payer)
		if err := s.pay(p.paid); err != nil {
			s.Fatal(err)
		}
		c, err := s.node.Claims.Find(s.Context(), p.paid)
		if err != nil {
			s.Fatal(err)
		}
		inTime = c.Status == dibs.Confirmed
	}
	s.whole()
	s.end(p.id)
	return p, sells
}

func (s *several) end(campaign string) {
	s.Helper()
	if _, err := s.node.Campaigns.End(s.Context(), campaign); err != nil {
		s.Fatal(err)
	}
}

func (s *several) pay(claim string) error {
	_, _, err := s.node.Orders.Confirm(s.Context(), claim, dibs.PaymentSpec{PaymentRef: "payment of " + claim})
	return err
}

// giveUp gives the shard of a campaign up.
func (s *several) giveUp(campaign string) error {
	_, err := s.node.Campaigns.AbandonShard(s.Context(), campaign, 0, campaigns.Abandonment{Yes: true})
	return err
}

// refund gives the payer's unit back.
func (s *several) refund(p past) {
	s.Helper()
	if _, _, err := s.node.Orders.Refund(s.Context(), p.paid, dibs.RefundSpec{Restock: true}, "refund"); err != nil {
		s.Fatal(err)
	}
}

// carriedOut waits until no command waits for an engine, and verifies a campaign.
func (s *several) carriedOut(campaign string) {
	s.Helper()
	s.until("no command waits for an engine", func() bool {
		waiting, err := s.node.Ledger.Commands(s.Context(), 0, 10)
		if err != nil {
			s.Fatal(err)
		}
		return len(waiting) == 0
	})
	if report, err := s.node.Audit.Verify(s.Context(), campaign); err != nil || !report.OK {
		s.Errorf("%+v, %v", report, err)
	}
}

// TestAnEndedCampaignIsAbandoned gives up the shard of a campaign that is over, whose server is
// lost for good. From then on the ledger answers for it.
func TestAnEndedCampaignIsAbandoned(t *testing.T) {
	s := newSeveral(t, 2)
	s.open(0, 1)
	p, _ := s.pastOn(1)
	s.redis[0].Kill()
	s.until("it is given up", func() bool {
		err := s.giveUp(p.id)
		if err != nil && !errors.Is(err, dibs.ErrInvalidState) {
			t.Fatal(err)
		}
		return err == nil
	})
	s.until("a yes from before is repeated", func() bool {
		r, err := s.claim(p.id, p.payer)
		return err == nil && r.Replayed
	})
	s.refund(p)
	s.carriedOut(p.id)
}

// TestADeploymentIsTakenOut opens a node without a deployment whose campaigns are over, with
// two others and with one. What is past can be verified. What is still to be done for it waits,
// and goes on once its shard is given up; no other shard can be.
func TestADeploymentIsTakenOut(t *testing.T) {
	for left := 1; left <= 2; left++ {
		t.Run(fmt.Sprint(left, " left"), func(t *testing.T) {
			s := newSeveral(t, left+1)
			s.open([]int{0, 1, 2}[:left+1]...)
			p, sells := s.pastOn(left + 1)
			s.close()
			s.open([]int{0, 1}[:left]...)
			s.whole()
			s.refund(p)
			if err := s.node.Live.Outbox.Send(t.Context()); !errors.Is(err, live.ErrOtherDeployment) || !strings.Contains(err.Error(), "campaign "+p.id) {
				t.Errorf("the unit that came back: %v", err)
			}
			if err := s.pay(p.late); !errors.Is(err, dibs.ErrUnavailable) {
				t.Errorf("a late payment: %v", err)
			}
			if err := s.giveUp(sells); !errors.Is(err, dibs.ErrInvalidState) {
				t.Errorf("a shard that sells: %v", err)
			}
			s.end(sells)
			if err := s.giveUp(sells); !errors.Is(err, dibs.ErrInvalidState) {
				t.Errorf("a shard of a past campaign on a deployment that is there: %v", err)
			}
			if err := s.giveUp(p.id); err != nil {
				t.Fatal(err)
			}
			s.until("the late payment is taken", func() bool { return s.pay(p.late) == nil })
			s.carriedOut(p.id)
		})
	}
}
