package dibs

import (
	"testing"
	"time"
)

// A claim is what its events say: replaying them yields the payment, the refunds, the
// use of a coupon and the way of the goods.
func TestEventsMakeTheClaim(t *testing.T) {
	at := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	price, part := &Money{Amount: 500, Currency: "CNY"}, &Money{Amount: 200, Currency: "CNY"}
	c := &Claim{Status: Pending, Amount: price}
	steps := []ClaimEvent{
		{Step: StepConfirm, Status: Confirmed, EventFacts: EventFacts{Ref: "pay", Amount: price}},
		{Step: StepShip, Status: Confirmed, EventFacts: EventFacts{Carrier: "SF", TrackingNo: "1"}},
		{Step: StepRefund, Status: Confirmed, EventFacts: EventFacts{Ref: "part", Amount: part}},
		{Step: StepRefund, Status: Refunded, EventFacts: EventFacts{Ref: "rest", Amount: &Money{Amount: 300, Currency: "CNY"}, Restock: true}},
	}
	for i := range steps {
		steps[i].N, steps[i].At = i+1, at.Add(time.Duration(i)*time.Second)
		c.Apply(&steps[i])
	}
	if c.Status != Refunded || !c.Restocked || len(c.Events) != len(steps) {
		t.Errorf("%s, restocked %t, after %d events", c.Status, c.Restocked, len(c.Events))
	}
	if p := c.Payment; p == nil || p.Ref != "pay" || p.Refunded != price.Amount {
		t.Errorf("the payment: %+v", p)
	}
	if s := c.Shipment; s == nil || s.Carrier != "SF" || s.TrackingNo != "1" {
		t.Errorf("the shipment: %+v", s)
	}
	if last := c.Last(StepRefund); last == nil || last.Ref != "rest" {
		t.Errorf("the last refund: %+v", last)
	}

	used := &Claim{Status: Confirmed}
	used.Apply(&ClaimEvent{N: 1, Step: StepRedeem, Status: Confirmed, At: at, EventFacts: EventFacts{Ref: "order"}})
	if used.Redemption == nil || used.Redemption.Ref != "order" {
		t.Errorf("the use: %+v", used.Redemption)
	}
	used.Apply(&ClaimEvent{N: 2, Step: StepUnredeem, Status: Confirmed, At: at, EventFacts: EventFacts{Ref: "order"}})
	if used.Redemption != nil {
		t.Errorf("the use after it was rolled back: %+v", used.Redemption)
	}
}
