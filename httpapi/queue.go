package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
)

// The headers by which a claim carries what the gates of its campaign want.
const (
	headerTicket    = "Dibs-Ticket"
	headerAdmission = "Dibs-Admission"
)

// single is the value of a header that comes once; "" else.
func single(h http.Header, name string) string {
	if v := h[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

const tagQueue = "Waiting rooms, lotteries, tickets"

var (
	errNoRoom    = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign has no waiting room", ZH: "该活动没有等候室"})
	errNoLottery = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign draws no lots", ZH: "该活动没有抽签"})
	errNoTickets = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign has no tickets", ZH: "该活动无需凭票"})
)

// campaignFor returns a campaign that users may know of, with the spec of its
// room; none is an error.
func (a *api) campaignFor(ctx context.Context, id string, none error, has func(*dibs.GateSpec) bool) (*dibs.Campaign, error) {
	c, err := a.svc.PublicCampaign(ctx, id)
	if err != nil {
		return nil, err
	}
	if c.Gate == nil || !has(c.Gate) {
		return nil, none
	}
	return c, nil
}

func (a *api) queueOf(ctx context.Context, id string) (*dibs.Campaign, error) {
	return a.campaignFor(ctx, id, errNoRoom, func(g *dibs.GateSpec) bool {
		return a.cfg.Places != nil && g.Room != nil && g.Room.Mode != dibs.Lottery
	})
}

// gateProblem tells an error of a gate with the facts that its reason has. opens
// is what has not begun, when that is not the campaign.
func gateProblem(c *dibs.Campaign, err error, opens time.Time) error {
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != dibs.NotStarted && e.Reason != dibs.Ended && e.Reason != dibs.Paused {
		return err
	}
	p := refusalOf(&dibs.Result{Outcome: e.Reason, Campaign: c})
	if e.Detail.EN != "" {
		p.detail = e.Detail
		if e.Reason == dibs.NotStarted && !opens.IsZero() {
			p.startsAt = opens
		}
	}
	return p
}

func (a *api) registerQueue() {
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/queue", id: "join-queue", tag: tagQueue, access: userOnly,
		summary: "Take a place in the waiting room", maxBody: a.cfg.MaxBody, knowsRepeats: true,
		description: "Again, it returns the place that the user has: leaving and coming back keeps it. Whose turn it is gets an `admission`, " +
			"which the claim carries in `Dibs-Admission`; asking again renews it. In a shuffled room the place is 0 until the start.",
	}, func(ctx context.Context, c *call, in *PathID, _ *noBody) (dibs.PlaceView, error) {
		campaign, err := a.queueOf(ctx, in.ID)
		if err != nil {
			return dibs.PlaceView{}, err
		}
		v, err := a.cfg.Places.Join(ctx, campaign, c.who.user)
		if err != nil {
			return v, gateProblem(campaign, err, campaign.Gate.Room.OpensAt)
		}
		return v, nil
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/queue", id: "my-place", tag: tagQueue, access: userOnly,
		summary: "Show my place in the waiting room", description: "`ask_after` says when it is worth to ask again.",
	}, func(ctx context.Context, c *call, in *PathID) (dibs.PlaceView, error) {
		campaign, err := a.queueOf(ctx, in.ID)
		if err != nil {
			return dibs.PlaceView{}, err
		}
		return a.cfg.Places.Place(ctx, campaign, c.who.user)
	})
	register(a, operation{
		method: http.MethodDelete, path: "/v1/campaigns/{id}/queue", id: "leave-queue", tag: tagQueue, access: userOnly,
		summary: "Give my place up for good", description: "Those behind move up. Nothing happens to who has none.",
	}, func(ctx context.Context, c *call, in *PathID) (leftView, error) {
		campaign, err := a.queueOf(ctx, in.ID)
		if err != nil {
			return leftView{}, err
		}
		return leftView{campaign.ID, true}, a.cfg.Places.Leave(ctx, campaign, c.who.user)
	})
}

// leftView says that a place was given up.
type leftView struct {
	CampaignID string `json:"campaign_id"`
	Left       bool   `json:"left"`
}

func (a *api) ticketsOf(ctx context.Context, id string) (*dibs.Campaign, error) {
	return a.campaignFor(ctx, id, errNoTickets, func(g *dibs.GateSpec) bool { return a.cfg.Tickets != nil && g.Ticket != nil })
}

func (a *api) registerTickets() {
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/tickets", id: "get-ticket", tag: tagQueue, access: userOnly,
		summary: "Get a ticket, from the opening on", maxBody: a.cfg.MaxBody, knowsRepeats: true,
		example:     `{"challenge":"AZc9…","nonce":"48213"}`,
		description: "A claim carries it in `Dibs-Ticket`. It may cost work, or a voucher of a human check: the challenge says so.",
	}, func(ctx context.Context, c *call, in *PathID, req *dibs.TicketRequest) (dibs.TicketView, error) {
		campaign, err := a.ticketsOf(ctx, in.ID)
		if err != nil {
			return dibs.TicketView{}, err
		}
		v, err := a.cfg.Tickets.Ticket(ctx, campaign, c.who.user, *req)
		if err != nil {
			return v, gateProblem(campaign, err, time.Time{})
		}
		return v, nil
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/tickets/challenge", id: "get-challenge", tag: tagQueue, access: userOnly,
		summary: "Learn what a ticket costs, from the opening on", maxBody: a.cfg.MaxBody, knowsRepeats: true,
		description: "Find a `nonce` so that the SHA-256 of `challenge`, a colon and the nonce begins with `bits` zero bits.",
	}, func(ctx context.Context, c *call, in *PathID, _ *noBody) (dibs.Challenge, error) {
		campaign, err := a.ticketsOf(ctx, in.ID)
		if err != nil {
			return dibs.Challenge{}, err
		}
		v, err := a.cfg.Tickets.Challenge(ctx, campaign, c.who.user)
		if err != nil {
			return v, gateProblem(campaign, err, time.Time{})
		}
		return v, nil
	})
}
