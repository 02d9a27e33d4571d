package claims_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// closing is a gate that turns everybody away once it is shut.
type closing struct{ shut bool }

func (g *closing) Pass(context.Context, *dibs.Campaign, *dibs.ClaimRequest) (dibs.Result, bool) {
	return dibs.Result{Outcome: dibs.Waiting, Place: 7, RetryAfter: time.Second}, !g.shut
}

// A gate stands before the engine, in front of new claims only: a user whose yes got
// lost on the way finds it, although it is not their turn any more.
func TestGateRefusesAllButRepeats(t *testing.T) {
	gate := &closing{}
	r := testnode.New(t, node.ServiceConfig{Gates: []dibs.Gate{gate}})
	spec := r.Sale("phone", 10)
	spec.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1}}
	r.Publish(spec)
	r.Publish(r.Sale("open", 10))
	c, err := r.Node.Live.Registry.Get(t.Context(), "phone")
	if err != nil {
		t.Fatal(err)
	}
	// The room behind the gate has let ann in.
	place, err := r.Node.Rooms.Join(t.Context(), c, "ann")
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "ann", Key: "tap", Admission: place.Admission})
	if err != nil {
		t.Fatal(err)
	}
	if first.Outcome != dibs.Granted {
		t.Fatalf("with the gate open: %v", first.Outcome)
	}
	gate.shut = true
	if again := r.Claim("phone", "ann", "tap", 1); !again.Replayed || again.Claim.ID != first.Claim.ID {
		t.Errorf("the repeat: %v", again.Outcome)
	}
	for _, key := range []string{"", "other"} {
		if no := r.Claim("phone", "bob", key, 1); no.Outcome != dibs.Waiting || no.Place != 7 || no.Campaign == nil {
			t.Errorf("with the key %q: %v, place %d", key, no.Outcome, no.Place)
		}
	}
	if yes := r.Claim("open", "bob", "", 1); yes.Outcome != dibs.Granted {
		t.Errorf("where there is no gate: %v", yes.Outcome)
	}
	stats, err := r.Node.Stats(t.Context(), "phone")
	if err != nil || stats.Granted != 1 || stats.Refused["waiting"] != 2 {
		t.Errorf("granted %d, refused %v, %v", stats.Granted, stats.Refused, err)
	}
	r.Verify()
}

func TestGateOfAPublishedCampaign(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("phone", 10)
	spec.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1}}
	r.Publish(spec)
	patch := func(g dibs.GateSpec) error {
		_, err := r.Node.Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{Gate: &g})
		return err
	}
	if err := patch(dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 5}}); err != nil {
		t.Errorf("another rate: %v", err)
	}
	var refusal *dibs.Error
	if err := patch(dibs.GateSpec{}); !errors.As(err, &refusal) || refusal.Faults[0].Field != "/gate/room" {
		t.Errorf("no room any more: %v", err)
	}
	if err := patch(dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO}}); !errors.As(err, &refusal) || refusal.Faults[0].Field != "/gate/room/rate" {
		t.Errorf("a rate of zero: %v", err)
	}
	c, err := r.Node.Live.Registry.Get(t.Context(), "phone")
	if err != nil || c.Gate == nil || *c.Gate.Room != (dibs.RoomSpec{Mode: dibs.FIFO, Rate: 5}) {
		t.Errorf("it is kept as %+v, %v", c.Gate, err)
	}
}

// A campaign's limits hold, a repeat is found whatever they say, and what they
// refused is counted.
func TestLimitsOfACampaign(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("phone", 10)
	spec.Gate = &dibs.GateSpec{Limits: []dibs.LimitSpec{{Per: "user", Rate: 1, Every: dibs.Duration(time.Hour)}, {Per: "campaign", Rate: 1, Every: dibs.Duration(time.Hour), Burst: 2}}}
	r.Publish(spec)
	first := r.Claim("phone", "ann", "tap", 1)
	if first.Outcome != dibs.Granted {
		t.Fatalf("the first claim: %v", first.Outcome)
	}
	if again := r.Claim("phone", "ann", "tap", 1); !again.Replayed {
		t.Errorf("the repeat: %v", again.Outcome)
	}
	for _, want := range []struct {
		user, limit string
		outcome     dibs.Reason
	}{{"ann", "campaign.user", dibs.RateLimited}, {"bob", "", dibs.Granted}, {"cid", "campaign.campaign", dibs.RateLimited}} {
		res := r.Claim("phone", want.user, "", 1)
		if res.Outcome != want.outcome || res.Quota.Name != want.limit {
			t.Errorf("%s: %v by %q", want.user, res.Outcome, res.Quota.Name)
		}
	}
	stats, err := r.Node.Stats(t.Context(), "phone")
	if err != nil || stats.Granted != 2 || stats.Refused["rate_limited"] != 2 {
		t.Errorf("granted %d, refused %v, %v", stats.Granted, stats.Refused, err)
	}
	r.Verify()
}

// Claims that cannot pass take nothing from a campaign's limits: whoever may
// claim finds all of them, however many others knocked before.
func TestLimitsAreForThoseWhoMayClaim(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	if _, err := r.Node.Audiences.Import(t.Context(), "vip", strings.NewReader("ann\nbob"), nil); err != nil {
		t.Fatal(err)
	}
	spec := r.Sale("phone", 10)
	spec.Gate = &dibs.GateSpec{
		Limits:   []dibs.LimitSpec{{Per: "campaign", Rate: 1, Every: dibs.Duration(time.Hour)}},
		Audience: &dibs.AudienceSpec{List: "vip"},
		Room:     &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: 10},
		Ticket:   &dibs.TicketSpec{Lifetime: dibs.Duration(time.Hour)},
	}
	r.Publish(spec)
	c, err := r.Node.Live.Registry.Get(t.Context(), "phone")
	if err != nil {
		t.Fatal(err)
	}
	place, err := r.Node.Rooms.Join(t.Context(), c, "ann")
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := r.Node.Tickets.Ticket(t.Context(), c, "ann", gate.TicketRequest{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(user, ticket, admission string) dibs.Reason {
		t.Helper()
		res, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: user, Ticket: ticket, Admission: admission})
		if err != nil {
			t.Fatal(err)
		}
		return res.Outcome
	}
	// The list is loaded when it is first asked for.
	over := time.After(time.Minute)
	for tick := time.NewTicker(time.Millisecond); ask("eve", "", "") == dibs.Overloaded; {
		select {
		case <-tick.C:
		case <-over:
			t.Fatal("a minute later the list is not loaded")
		}
	}
	for _, step := range []struct {
		user, ticket, admission string
		want                    dibs.Reason
	}{
		{"eve", "", "", dibs.NotEligible},
		{"ann", "", place.Admission, dibs.TicketRequired},
		{"ann", ticket.Ticket, "", dibs.Waiting},
		{"ann", ticket.Ticket, place.Admission, dibs.Granted},
		{"ann", ticket.Ticket, place.Admission, dibs.RateLimited},
	} {
		if got := ask(step.user, step.ticket, step.admission); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
	}
	r.Verify()
}

// slow is a gate that a claim passes when its token has ended.
type slow struct{}

func (slow) Pass(_ context.Context, _ *dibs.Campaign, req *dibs.ClaimRequest) (dibs.Result, bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !time.Now().After(req.Until) {
		<-tick.C
	}
	return dibs.Result{}, true
}

// pass is a gate that lets every claim through.
type pass struct{}

func (pass) Pass(context.Context, *dibs.Campaign, *dibs.ClaimRequest) (dibs.Result, bool) {
	return dibs.Result{}, true
}

// TestTokenThatIsRevokedAtTheGate: a claim whose token was revoked while it waited at the gates is not decided, and one
// without a token is not asked about.
func TestTokenThatIsRevokedAtTheGate(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{Gates: []dibs.Gate{pass{}}})
	spec := r.Sale("phone", 10)
	spec.Gate = &dibs.GateSpec{Limits: []dibs.LimitSpec{{Per: "user", Rate: 100}}}
	r.Publish(spec)
	if _, err := r.Node.Revocations.Revoke(t.Context(), access.RevocationSpec{JTI: "t1"}); err != nil {
		t.Fatal(err)
	}
	req := dibs.ClaimRequest{CampaignID: "phone", UserID: "ann", Until: time.Now().Add(time.Hour), TokenID: "t1"}
	if _, err := r.Node.Claims.Claim(t.Context(), req); !errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}) {
		t.Errorf("with a token that was revoked: %v", err)
	}
	for i, id := range []string{"t2", ""} {
		req.TokenID, req.UserID = id, fmt.Sprint("bob", i)
		if res, err := r.Node.Claims.Claim(t.Context(), req); err != nil || res.Outcome != dibs.Granted {
			t.Errorf("token %q: %v, %v", id, res.Outcome, err)
		}
	}
}

// TestTokenThatEndsAtTheGate: a claim whose token ended while it waited at the gates of its
// campaign is not decided.
func TestTokenThatEndsAtTheGate(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{Gates: []dibs.Gate{slow{}}})
	spec := r.Sale("phone", 10)
	spec.Gate = &dibs.GateSpec{Limits: []dibs.LimitSpec{{Per: "user", Rate: 100}}}
	r.Publish(spec)
	req := dibs.ClaimRequest{CampaignID: "phone", UserID: "ann", Until: time.Now().Add(50 * time.Millisecond)}
	if _, err := r.Node.Claims.Claim(t.Context(), req); !errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}) {
		t.Errorf("with a token that ended: %v", err)
	}
	req.Until = time.Time{}
	if res, err := r.Node.Claims.Claim(t.Context(), req); err != nil || res.Outcome != dibs.Granted {
		t.Errorf("with a token without end: %v, %v", res.Outcome, err)
	}
}
