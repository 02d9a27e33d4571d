package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/tokens"
)

// Gateway holds long-lived connections; gateway.Hub fills it. When a method returns
// an error, it has sent nothing, and the error is answered here.
type Gateway interface {
	prometheus.Collector
	// WebSocket makes a WebSocket of a request. check returns what a valid token says.
	WebSocket(w http.ResponseWriter, r *http.Request, check func(ctx context.Context, token string) (tokens.Token, error), v dibs.Visitor) error
	// Events streams the changes of a campaign until the client goes.
	Events(w http.ResponseWriter, r *http.Request, campaign, lastEventID string, v dibs.Visitor) error
	// Ticket makes a ticket that opens one WebSocket as the user of a token.
	Ticket(ctx context.Context, of tokens.Token) (ticket string, expires time.Time, err error)
}

// wsTicketView is a ticket for the address of a WebSocket.
type wsTicketView struct {
	Ticket    string    `json:"ticket" doc:"opens one WebSocket, at /v1/ws?ticket="`
	ExpiresAt time.Time `json:"expires_at"`
}

// gatewayHandlers open long-lived connections.
// A WebSocket begins without credentials: the token comes in its first message, or a
// ticket in its address.
type gatewayHandlers struct {
	*routes
	gateway Gateway
}

func (h *gatewayHandlers) register() {
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/ws-tickets", id: "create-ws-ticket", tag: tagGateway, access: userOnly, status: http.StatusCreated,
		summary: "Get a ticket for a WebSocket", knowsRepeats: true, example: "{}",
		description: "For clients that cannot send a token in the first message. The ticket opens one WebSocket, within seconds, " +
			"at `/v1/ws?ticket=…`. Each call makes another one.",
	}, func(ctx context.Context, c *call, _ *struct{}, _ *noBody) (v wsTicketView, err error) {
		// The body may have been under way for long: a token that was good before it may be so no more.
		is, err := h.auth.claimant(c.request.Header)
		if err != nil {
			return v, err
		}
		v.Ticket, v.ExpiresAt, err = h.gateway.Ticket(ctx, is.token)
		v.ExpiresAt = v.ExpiresAt.UTC()
		return v, err
	})
	h.plain(operation{
		method: http.MethodGet, path: "/v1/ws", id: "websocket", tag: tagGateway, access: open,
		summary: "Open a WebSocket",
		description: "Claims and results, and changes of campaigns, over one connection; docs/GATEWAY.md has the messages. " +
			"The first message has the token, or the address a `ticket` of `POST /v1/ws-tickets`. Never put a token into the address.",
	}, "application/json", h.open)
	h.plain(operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/events", id: "campaign-events", tag: tagGateway, access: open,
		summary: "Follow a campaign, as server-sent events",
		description: "Opens, pauses, reopens, sells out, ends, and what remains; docs/GATEWAY.md has the events. " +
			"With `Last-Event-ID`, events that the client has seen are not sent again.",
	}, web.TypeEvents[0], func(c *call, w http.ResponseWriter, r *http.Request) error {
		err := h.stranger(c, r)
		if err == nil {
			err = h.gateway.Events(w, r, r.PathValue("id"), r.Header.Get("Last-Event-ID"), c.visitor(h.proxies))
		}
		return err
	})
}

// open opens a WebSocket. A ticket that is tried is looked up where all nodes see it, so it counts as a call of its
// address, good or not: the connections that are open bound none that is refused.
func (h *gatewayHandlers) open(c *call, w http.ResponseWriter, r *http.Request) error {
	switch tickets := r.URL.Query()["ticket"]; {
	case len(tickets) > 1:
		return dibs.Invalid(givenTwice("ticket"))
	case len(tickets) == 1:
		if err := h.strangers.count(c, c.request); err != nil {
			return err
		}
	}
	return h.gateway.WebSocket(w, r, h.checkToken, c.visitor(h.proxies))
}

// checkToken returns what a valid token says.
func (h *gatewayHandlers) checkToken(_ context.Context, token string) (tokens.Token, error) {
	if !looksLikeUserToken(token) {
		return tokens.Token{}, errBadToken
	}
	user, err := h.auth.user(token)
	return user.token, err
}
