package client

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
)

// Rooms waits in the waiting rooms of campaigns, for users.
type Rooms struct{ *caller }

// Join takes a place in a campaign's waiting room, or returns the one that the
// user has. A user whose turn it is gets an Admission; see WithAdmission.
func (c Rooms) Join(ctx context.Context, campaign string) (gate.PlaceView, error) {
	return user[gate.PlaceView](ctx, c.caller, http.MethodPost, campaignPath(campaign)+"/queue", nil)
}

// Place returns the user's place in a campaign's waiting room.
func (c Rooms) Place(ctx context.Context, campaign string) (gate.PlaceView, error) {
	return user[gate.PlaceView](ctx, c.caller, http.MethodGet, campaignPath(campaign)+"/queue", nil)
}

// Leave gives the user's place up for good.
func (c Rooms) Leave(ctx context.Context, campaign string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: campaignPath(campaign) + "/queue", token: c.opts.Token}, nil)
	return err
}

// Tickets fetches tickets for campaigns that require them, for users.
type Tickets struct{ *caller }

// Challenge tells what a ticket of a campaign costs.
func (c Tickets) Challenge(ctx context.Context, campaign string) (gate.Challenge, error) {
	return user[gate.Challenge](ctx, c.caller, http.MethodPost, campaignPath(campaign)+"/tickets/challenge", nil)
}

// Get fetches a ticket of a campaign; see WithTicket.
func (c Tickets) Get(ctx context.Context, campaign string, req gate.TicketRequest) (gate.TicketView, error) {
	return user[gate.TicketView](ctx, c.caller, http.MethodPost, campaignPath(campaign)+"/tickets", req)
}

// Lotteries takes part in lotteries and checks them. Users call Register and Result,
// admins TellPublicValue; Get and Entries are public.
type Lotteries struct{ *caller }

// Register registers the user for a campaign's lottery, or returns the
// registration that there is.
func (c Lotteries) Register(ctx context.Context, campaign string) (gate.EntryView, error) {
	return user[gate.EntryView](ctx, c.caller, http.MethodPost, campaignPath(campaign)+"/lottery/entries", nil)
}

// Result returns the user's registration, and whether it has won.
func (c Lotteries) Result(ctx context.Context, campaign string) (gate.EntryView, error) {
	return user[gate.EntryView](ctx, c.caller, http.MethodGet, campaignPath(campaign)+"/lottery/result", nil)
}

// Get tells how a campaign's lottery stands.
func (c Lotteries) Get(ctx context.Context, campaign string) (gate.LotteryView, error) {
	return get[gate.LotteryView](ctx, c.caller, campaignPath(campaign)+"/lottery", nil, "")
}

// Entries returns the closed list of a campaign's lottery, a hash a line.
// The caller closes it.
func (c Lotteries) Entries(ctx context.Context, campaign string) (io.ReadCloser, error) {
	resp, err := c.send(ctx, request{method: http.MethodGet, path: campaignPath(campaign) + "/lottery/entries"})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	return nil, problemOf(resp, raw)
}

// TellPublicValue tells the public value that a campaign's lottery waits for.
func (c Lotteries) TellPublicValue(ctx context.Context, campaign, value string) (gate.LotteryView, error) {
	return admin[gate.LotteryView](ctx, c.caller, http.MethodPost, campaignPath(campaign)+"/lottery/public-value", "", dibs.PublicValueSpec{Value: value})
}
