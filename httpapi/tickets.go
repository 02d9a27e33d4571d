package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

// registerTickets adds the routes that give tickets out. Without tickets, no campaign asks for one.
func registerTickets(a *routes, campaigns PublicCampaigns, tickets gate.Tickets) {
	find := func(ctx context.Context, id string) (*dibs.Campaign, error) {
		return withGate(ctx, campaigns, id, gate.NoTickets, func(g *dibs.GateSpec) bool { return tickets != nil && g.Ticket != nil })
	}
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/tickets", id: "get-ticket", tag: tagGates, access: userOnly,
		summary: "Get a ticket, from the opening on", knowsRepeats: true,
		example:     `{"challenge":"AZc9…","nonce":"48213"}`,
		description: "A claim carries it in `Dibs-Ticket`. It may cost work, or a voucher of a human check: the challenge says so.",
	}, func(ctx context.Context, c *call, in *PathID, req *gate.TicketRequest) (gate.TicketView, error) {
		return atTicketGate(ctx, find, in.ID, func(campaign *dibs.Campaign) (gate.TicketView, error) {
			return tickets.Ticket(ctx, campaign, c.caller.user, *req)
		})
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/tickets/challenge", id: "get-challenge", tag: tagGates, access: userOnly,
		summary: "Show what a ticket costs, from the opening on", knowsRepeats: true,
		description: "Find a `nonce` so that the SHA-256 of `challenge`, a colon and the nonce begins with `bits` zero bits.",
	}, func(ctx context.Context, c *call, in *PathID, _ *noBody) (gate.Challenge, error) {
		return atTicketGate(ctx, find, in.ID, func(campaign *dibs.Campaign) (gate.Challenge, error) {
			return tickets.Challenge(ctx, campaign, c.caller.user)
		})
	})
}

// findCampaign finds a campaign with a gate of one kind.
type findCampaign func(ctx context.Context, id string) (*dibs.Campaign, error)

// atTicketGate asks the tickets of a campaign that has them.
func atTicketGate[T any](ctx context.Context, find findCampaign, id string, ask func(*dibs.Campaign) (T, error)) (v T, err error) {
	campaign, err := find(ctx, id)
	if err != nil {
		return v, err
	}
	v, err = ask(campaign)
	return v, gateProblem(campaign, err, time.Time{})
}
