package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
)

const tagGateway = "Gateway"

// Gateway holds long-lived connections. embedded.Node makes the one that
// exists, of package gateway. The errors of its methods are answered here:
// nothing was sent then.
type Gateway interface {
	prometheus.Collector
	// WebSocket makes a WebSocket of a request. check returns the user of a token
	// and when it stops to be valid, zero for no end.
	WebSocket(w http.ResponseWriter, r *http.Request, check func(ctx context.Context, token string) (string, time.Time, error), v dibs.Visitor) error
	// Events streams where a campaign stands until the client goes.
	Events(w http.ResponseWriter, r *http.Request, campaign, lastEventID string, v dibs.Visitor) error
	// Ticket makes a ticket that opens one WebSocket as a user.
	Ticket(ctx context.Context, user string, until time.Time) (ticket string, expires time.Time, err error)
}

// wsTicketView is a ticket for the address of a WebSocket.
type wsTicketView struct {
	Ticket    string    `json:"ticket" doc:"opens one WebSocket, at /v1/ws?ticket="`
	ExpiresAt time.Time `json:"expires_at"`
}

// registerGateway adds the long-lived connections, when there is a gateway.
func (a *api) registerGateway() error {
	g := a.cfg.Gateway
	if g == nil {
		return nil
	}
	if err := a.cfg.Registry.Register(g); err != nil {
		return err
	}
	change(a, operation{
		method: http.MethodPost, path: "/v1/ws-tickets", id: "create-ws-ticket", tag: tagGateway, access: userOnly, status: http.StatusCreated,
		summary: "Get a ticket for a WebSocket", maxBody: a.cfg.MaxBody, knowsRepeats: true, example: "{}",
		description: "For clients that cannot send a token in the first message. The ticket opens one WebSocket, within seconds, " +
			"at `/v1/ws?ticket=…`. Each call makes another one.",
	}, func(ctx context.Context, c *call, _ *struct{}, _ *noBody) (v wsTicketView, err error) {
		v.Ticket, v.ExpiresAt, err = g.Ticket(ctx, c.who.user, c.who.until)
		v.ExpiresAt = v.ExpiresAt.UTC()
		return v, err
	})
	a.plain(operation{
		method: http.MethodGet, path: "/v1/ws", id: "websocket", tag: tagGateway, access: open,
		summary: "Open a WebSocket",
		description: "Claims and results, and what happens to campaigns, over one connection; docs/GATEWAY.md has the messages. " +
			"The first message has the token, or the address a `ticket` of `POST /v1/ws-tickets`. Never put a token into the address.",
	}, "application/json", nil)
	a.routes.HandleFunc("GET /v1/ws", func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if err := g.WebSocket(w, r, a.checkToken, a.visitor(c, r)); err != nil {
			a.fail(c, err)
		}
	})
	a.plain(operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/events", id: "campaign-events", tag: tagGateway, access: open,
		summary: "Follow a campaign, as server-sent events",
		description: "Opens, pauses, reopens, sells out, ends, and what remains; docs/GATEWAY.md has the events. " +
			"With `Last-Event-ID`, what the client has seen is not sent again.",
	}, "text/event-stream", nil)
	a.routes.HandleFunc("GET /v1/campaigns/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if err := g.Events(w, r, r.PathValue("id"), r.Header.Get("Last-Event-ID"), a.visitor(c, r)); err != nil {
			a.fail(c, err)
		}
	})
	return nil
}

// visitor is who asks for a long-lived connection.
func (a *api) visitor(c *call, r *http.Request) dibs.Visitor {
	return dibs.Visitor{Chinese: c.zh, RequestID: c.id, Address: a.proxies.client(r)}
}

// checkToken returns the user of a token and when it ends.
func (a *api) checkToken(_ context.Context, token string) (string, time.Time, error) {
	if !looksLikeUserToken(token) {
		return "", time.Time{}, errBadToken
	}
	v, ok := a.users.verify(token)
	if !ok {
		return "", time.Time{}, errBadToken
	}
	return v.user, v.until, nil
}
