package gateway_test

import (
	"testing"

	"github.com/dibs-dev/dibs/gateway"
)

// The same id for another campaign is another claim, also while the first is
// under way: both are answered.
func TestOneIDForTwoCampaigns(t *testing.T) {
	t.Parallel()
	h := hold(shared.Claims)
	r := start(t, gateway.Config{Claims: h})
	t.Cleanup(h.release)
	one, two := r.sale(1), r.sale(1)
	p := r.join("42")
	for _, campaign := range []string{one, two, one} {
		p.send(message{"type": "claim", "id": "tap", "campaign_id": campaign})
	}
	// What is read after the three says that they were taken.
	p.send(message{"type": "ping"})
	p.next("pong")
	h.release()
	answers := map[any]any{}
	for range 2 {
		m := p.next("result")
		answers[m["campaign_id"]] = m["outcome"]
	}
	if answers[one] != "granted" || answers[two] != "granted" {
		t.Errorf("%v", answers)
	}
	p.send(message{"type": "ping"})
	p.next("pong")
}

// A claim under way that is sent again above the rate has one answer, its own.
func TestTooFastForAClaimUnderWay(t *testing.T) {
	t.Parallel()
	h := hold(shared.Claims)
	r := start(t, gateway.Config{Claims: h, MessageRate: 1, MessageBurst: 10})
	t.Cleanup(h.release)
	sale := r.sale(1)
	p := r.join("42")
	p.send(message{"type": "claim", "id": "tap", "campaign_id": sale})
	<-h.reached
	for range 17 {
		p.send(message{"type": "claim", "id": "tap", "campaign_id": sale})
	}
	p.send(message{"type": "ping", "id": "above"})
	if m := p.next("error"); m["id"] != "above" || m["reason"] != "rate_limited" {
		t.Errorf("%v", m)
	}
	h.release()
	if m := p.next("result"); m["id"] != "tap" || m["outcome"] != "granted" {
		t.Errorf("%v", m)
	}
}
