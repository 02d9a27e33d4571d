// Package client calls the HTTP API of dibs.
//
// # Basics
//
// New makes a client. Claim is its own method; all else is a method of one of its
// parts (c.Campaigns.Publish, c.Orders.Confirm), which mirror the API and return
// dibs's views. A refusal or an error of the server is an *Error, which errors.Is
// matches with the sentinels of package dibs:
//
//	claim, replayed, err := c.Claim(ctx, "phone-noon", 1, key)
//	var refusal *client.Error
//	switch {
//	case err == nil:                       // yours: claim.ID
//	case errors.As(err, &refusal) && refusal.Reason == "sold_out":
//	}
//
// # Caveats
//
// The client never repeats a request by itself. After an error that is no
// *Error (the connection broke), or an *Error whose Effect is "unknown", a
// claim may have been granted: repeat it with the same key to find out. That is so
// of an "overloaded", too, for which nobody has looked; a key that was never sent
// before was not granted. Nor has anybody looked for a "rate_limited", for a
// "forbidden" of somebody who is blocked by now, or for an "unauthenticated". A claim
// without a key cannot be repeated safely.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/api"
)

// Client calls one server: claims by itself, all else by the part that is named for it.
// It is safe for concurrent use, and so are its parts. Make one with New.
type Client struct {
	*caller
	Campaigns     Campaigns
	Products      Products
	Orders        Orders
	Accounts      Accounts
	Rooms         Rooms
	Tickets       Tickets
	Lotteries     Lotteries
	Announcements Announcements
	Audiences     Audiences
	Followers     Followers
	Events        Events
	Webhooks      Webhooks
	Erasures      Erasures
	Audit         Audit
	Tokens        Tokens
	Keys          Keys
	Sessions      Sessions
	Approvals     Approvals
}

// idleConns is how many connections wait for the next call.
const idleConns = 1024

// New returns a client of the server at baseURL, `http://127.0.0.1:8080`.
func New(baseURL string, opts Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("client: the base URL: %w", err)
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("client: the base URL must look like https://host:port, without user and password")
	}
	c := &caller{base: strings.TrimRight(baseURL, "/"), opts: opts, http: opts.HTTPClient}
	if c.http == nil {
		c.http = &http.Client{Transport: NewTransport()}
	}
	c.http = notRedirected(c.http)
	return newClient(c), nil
}

func newClient(c *caller) *Client {
	return &Client{
		c, Campaigns{c}, Products{c}, Orders{c}, Accounts{c}, Rooms{c}, Tickets{c}, Lotteries{c},
		Announcements{c}, Audiences{c}, Followers{c}, Events{c}, Webhooks{c}, Erasures{c}, Audit{c}, Tokens{c}, Keys{c}, Sessions{c}, Approvals{c},
	}
}

// with returns a client over the same connections with other options.
func (c *Client) with(change func(*Options)) *Client {
	other := *c.caller
	change(&other.opts)
	return newClient(&other)
}

// notRedirected returns a copy of a client that follows no redirects.
func notRedirected(h *http.Client) *http.Client {
	stays := *h
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &stays
}

// NewTransport returns a transport for many concurrent calls to one server.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConns:        idleConns,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		// Answers are small, and the server does not compress.
		DisableCompression: true,
	}
}

// WithToken returns a client for another user over the same connections.
func (c *Client) WithToken(token string) *Client {
	return c.with(func(o *Options) { o.Token = token })
}

// WithTicket returns a client over the same connections whose claims carry a
// ticket; "" for none.
func (c *Client) WithTicket(ticket string) *Client {
	return c.with(func(o *Options) { o.Ticket = ticket })
}

// WithAdmission returns a client over the same connections whose claims carry an
// admission; "" for none.
func (c *Client) WithAdmission(admission string) *Client {
	return c.with(func(o *Options) { o.Admission = admission })
}

// CloseIdle closes the connections that no call uses.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Claim asks for quantity units of a campaign; 0 means 1. With a key, the same
// call can be repeated, and replayed tells that the claim had been granted
// before. A refusal is an *Error.
func (c *Client) Claim(ctx context.Context, campaign string, quantity int64, key string) (claim api.ClaimView, replayed bool, err error) {
	return c.ClaimWith(ctx, campaign, quantity, key, "")
}

// ClaimWith is Claim with a reference of the caller's own, at most 256 characters, which
// comes back with the claim.
func (c *Client) ClaimWith(ctx context.Context, campaign string, quantity int64, key, reference string) (claim api.ClaimView, replayed bool, err error) {
	body := struct {
		Quantity  int64  `json:"quantity,omitempty"`
		Reference string `json:"reference,omitempty"`
	}{quantity, reference}
	return change[api.ClaimView](ctx, c.caller, request{
		path: campaignPath(campaign) + "/claims", token: c.opts.Token, key: key, body: body, gates: true,
	})
}

// Order asks for quantity units of a product's own stock; 0 means 1. It answers
// as Claim does.
func (c *Client) Order(ctx context.Context, product string, quantity int64, key string) (claim api.ClaimView, replayed bool, err error) {
	body := struct {
		Quantity int64 `json:"quantity,omitempty"`
	}{quantity}
	return change[api.ClaimView](ctx, c.caller, request{
		path: "/v1/products/" + url.PathEscape(product) + "/orders", token: c.opts.Token, key: key, body: body,
	})
}

// Time returns the server's time.
func (c *Client) Time(ctx context.Context) (time.Time, error) {
	v, err := get[struct {
		Now time.Time `json:"now"`
	}](ctx, c.caller, "/v1/time", nil, "")
	return v.Now, err
}

// Health returns the server's readiness. A server that is not ready is no
// error: the view says so.
func (c *Client) Health(ctx context.Context) (v api.HealthView, err error) {
	resp, err := c.send(ctx, request{method: http.MethodGet, path: "/readyz"})
	if err != nil {
		return v, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return v, fmt.Errorf("client: GET /readyz: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return v, problemOf(resp, raw)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("client: GET /readyz: %w", err)
	}
	return v, nil
}
