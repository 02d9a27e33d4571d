package client

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

// WithTicket returns a client over the same connections whose claims carry a
// ticket; "" for none.
func (c *Client) WithTicket(ticket string) *Client {
	other := *c
	other.opts.Ticket = ticket
	return &other
}

// WithAdmission returns a client over the same connections whose claims carry an
// admission; "" for none.
func (c *Client) WithAdmission(admission string) *Client {
	other := *c
	other.opts.Admission = admission
	return &other
}

// gateHeaders are those that a claim carries for the gates of its campaign.
func (c *Client) gateHeaders(h http.Header) {
	if c.opts.Ticket != "" {
		h.Set("Dibs-Ticket", c.opts.Ticket)
	}
	if c.opts.Admission != "" {
		h.Set("Dibs-Admission", c.opts.Admission)
	}
}

// user sends a user's call and returns what was answered.
func user[T any](ctx context.Context, c *Client, method, path string, body any) (v T, err error) {
	_, err = c.do(ctx, request{method: method, path: path, token: c.opts.Token, body: body}, &v)
	return v, err
}

// Join takes a place in a campaign's waiting room, or returns the one that the
// user has. Whose turn it is gets an Admission; see WithAdmission.
func (c *Client) Join(ctx context.Context, campaign string) (gate.PlaceView, error) {
	return user[gate.PlaceView](ctx, c, http.MethodPost, campaignPath(campaign)+"/queue", nil)
}

// Place returns the user's place in a campaign's waiting room.
func (c *Client) Place(ctx context.Context, campaign string) (gate.PlaceView, error) {
	return user[gate.PlaceView](ctx, c, http.MethodGet, campaignPath(campaign)+"/queue", nil)
}

// Leave gives the user's place up for good.
func (c *Client) Leave(ctx context.Context, campaign string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: campaignPath(campaign) + "/queue", token: c.opts.Token}, nil)
	return err
}

// Challenge tells what a ticket of a campaign costs.
func (c *Client) Challenge(ctx context.Context, campaign string) (gate.Challenge, error) {
	return user[gate.Challenge](ctx, c, http.MethodPost, campaignPath(campaign)+"/tickets/challenge", nil)
}

// Ticket fetches a ticket of a campaign; see WithTicket.
func (c *Client) Ticket(ctx context.Context, campaign string, req gate.TicketRequest) (gate.TicketView, error) {
	return user[gate.TicketView](ctx, c, http.MethodPost, campaignPath(campaign)+"/tickets", req)
}

// Register registers the user for a campaign's lottery, or returns the
// registration that there is.
func (c *Client) Register(ctx context.Context, campaign string) (gate.EntryView, error) {
	return user[gate.EntryView](ctx, c, http.MethodPost, campaignPath(campaign)+"/lottery/entries", nil)
}

// LotteryResult returns the user's registration, and whether it has won.
func (c *Client) LotteryResult(ctx context.Context, campaign string) (gate.EntryView, error) {
	return user[gate.EntryView](ctx, c, http.MethodGet, campaignPath(campaign)+"/lottery/result", nil)
}

// Lottery tells how a campaign's lottery stands.
func (c *Client) Lottery(ctx context.Context, campaign string) (v gate.LotteryView, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: campaignPath(campaign) + "/lottery"}, &v)
	return v, err
}

// LotteryEntries returns the closed list of a campaign's lottery, a hash a line.
// The caller closes it.
func (c *Client) LotteryEntries(ctx context.Context, campaign string) (io.ReadCloser, error) {
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
func (c *Client) TellPublicValue(ctx context.Context, campaign, value string) (gate.LotteryView, error) {
	return admin[gate.LotteryView](ctx, c, http.MethodPost, campaignPath(campaign)+"/lottery/public-value", "", dibs.PublicValueSpec{Value: value})
}
