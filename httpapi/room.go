package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/gate"
)

// PublicCampaigns is what the handlers of gates call.
type PublicCampaigns interface {
	// Public returns a campaign that users may know of; ErrNotFound for others;
	// *dibs.Error of Overloaded when too much is asked at once.
	Public(ctx context.Context, id string) (*dibs.Campaign, error)
	// ForCaller is Public for a call with credentials, whose place no stranger takes.
	ForCaller(ctx context.Context, id string) (*dibs.Campaign, error)
}

// withGate returns a campaign that has a gate, or else none.
// A draft looks like no campaign, and a campaign without the gate like one without
// that page.
func withGate(ctx context.Context, campaigns PublicCampaigns, id string, none error, has func(*dibs.GateSpec) bool) (*dibs.Campaign, error) {
	find := campaigns.Public
	if by := callOf(ctx).caller; by.user != "" || by.isAdmin() {
		find = campaigns.ForCaller
	}
	c, err := find(ctx, id)
	if err != nil {
		return nil, err
	}
	if c.Gate == nil || !has(c.Gate) {
		return nil, none
	}
	return c, nil
}

// gateProblem turns an error of a gate into a problem with the facts that its reason
// shows; nil stays nil. opens is the start of what has not begun, when that is not the campaign.
func gateProblem(c *dibs.Campaign, err error, opens time.Time) error {
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != dibs.NotStarted && e.Reason != dibs.Ended && e.Reason != dibs.Paused {
		return err
	}
	p := web.RefusalOf(&dibs.Result{Outcome: e.Reason, Campaign: c})
	if e.Detail.EN != "" {
		p.Detail = e.Detail
		if e.Reason == dibs.NotStarted && !opens.IsZero() {
			p.StartsAt = opens
		}
	}
	return p
}

// leftView says that a place was given up.
type leftView struct {
	CampaignID string `json:"campaign_id"`
	Left       bool   `json:"left"`
}

// registerRooms adds the routes of waiting rooms. Without places, no campaign has one.
// Joining and leaving may be repeated: a user has one place at a time.
func registerRooms(a *routes, campaigns PublicCampaigns, places gate.Places) {
	find := func(ctx context.Context, id string) (*dibs.Campaign, error) {
		return withGate(ctx, campaigns, id, gate.NoRoom, func(g *dibs.GateSpec) bool {
			return places != nil && g.Room != nil && g.Room.Mode != dibs.Lottery
		})
	}
	const path = "/v1/campaigns/{id}/queue"
	change(a, operation{
		method: http.MethodPost, path: path, id: "join-queue", tag: tagGates, access: userOnly,
		summary: "Take a place in the waiting room", knowsRepeats: true,
		description: "A repeat returns the place that the user has: leaving and coming back keeps it. A user whose turn it is gets an `admission`, " +
			"which the claim carries in `Dibs-Admission`; asking again renews it. In a shuffled room the place is 0 until the start.",
	}, func(ctx context.Context, c *call, in *PathID, _ *noBody) (gate.PlaceView, error) {
		campaign, err := find(ctx, in.ID)
		if err != nil {
			return gate.PlaceView{}, err
		}
		v, err := places.Join(ctx, campaign, c.caller.user)
		return v, gateProblem(campaign, err, campaign.Gate.Room.OpensAt)
	})
	register(a, operation{
		method: http.MethodGet, path: path, id: "my-place", tag: tagGates, access: userOnly,
		summary: "Show my place in the waiting room", description: "`ask_after` says when to ask again.",
	}, func(ctx context.Context, c *call, in *PathID) (gate.PlaceView, error) {
		campaign, err := find(ctx, in.ID)
		if err != nil {
			return gate.PlaceView{}, err
		}
		return places.Place(ctx, campaign, c.caller.user)
	})
	register(a, operation{
		method: http.MethodDelete, path: path, id: "leave-queue", tag: tagGates, access: userOnly,
		summary: "Give my place up for good", description: "Those behind move up. Without a place, nothing happens.",
	}, func(ctx context.Context, c *call, in *PathID) (leftView, error) {
		campaign, err := find(ctx, in.ID)
		if err != nil {
			return leftView{}, err
		}
		return leftView{campaign.ID, true}, places.Leave(ctx, campaign, c.caller.user)
	})
}
