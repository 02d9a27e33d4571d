// Package client calls the HTTP API of dibs.
//
// # Basics
//
// New makes a client; its methods mirror the API and return dibs's views. A
// refusal or an error of the server is an *Error, which errors.Is matches with
// the sentinels of package dibs:
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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// Options configure a client. The zero value calls what needs no token.
type Options struct {
	// Token is the user token for user calls.
	Token string
	// Ticket and Admission are what claims carry for the gates of their campaign.
	Ticket, Admission string
	// AdminKey is the API key for admin calls.
	AdminKey string
	// Language is sent as Accept-Language when it is set, `zh-CN`.
	Language string
	// HTTPClient replaces the default, which keeps up to 1,024 idle connections
	// to the server and has no timeout of its own: contexts bound the calls.
	HTTPClient *http.Client
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base string
	opts Options
	http *http.Client
}

// idleConns is how many connections wait for the next call.
const idleConns = 1024

// maxAnswer bounds what is read of an answer that is no stream.
const maxAnswer = 64 << 20

// New returns a client of the server at baseURL, `http://127.0.0.1:8080`.
func New(baseURL string, opts Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("client: the base URL: %w", err)
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("client: the base URL must look like https://host:port, without user and password")
	}
	c := &Client{base: strings.TrimRight(baseURL, "/"), opts: opts, http: opts.HTTPClient}
	if c.http == nil {
		c.http = &http.Client{Transport: NewTransport()}
	}
	return c, nil
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
	other := *c
	other.opts.Token = token
	return &other
}

// CloseIdle closes the connections that no call uses.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Error is a refusal or an error as the server told it.
type Error struct {
	api.Problem
	// RetryAfter is how long the server asks to wait; 0 when it does not.
	RetryAfter time.Duration
}

// Error names the reason and the detail.
func (e *Error) Error() string {
	word := e.Reason
	if word == "" {
		word = "HTTP " + strconv.Itoa(e.Status)
	}
	s := word + ": " + e.Detail
	for _, f := range e.Errors {
		s += "; " + f.Pointer + " " + f.Detail
	}
	return s
}

// Is matches dibs's sentinels by their reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*dibs.Error)
	return ok && t.Reason.String() == e.Reason
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	token        string
	key          string
	body         any
	// gates says that the call carries what the gates of its campaign want.
	gates bool
	// file is a body that is no JSON, of a type; prefer is a Prefer header.
	file         io.Reader
	kind, prefer string
}

// do sends a request and decodes its answer into out, unless that is nil. It
// reports whether the answer is a repeat of the first one.
func (c *Client) do(ctx context.Context, r request, out any) (replayed bool, err error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return false, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return false, fmt.Errorf("client: %s %s: reading the answer: %w", r.method, r.path, err)
	}
	if resp.StatusCode >= 300 {
		return false, problemOf(resp, raw)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			return false, fmt.Errorf("client: %s %s: the answer: %w", r.method, r.path, err)
		}
	}
	return resp.Header.Get("Idempotent-Replayed") == "true", nil
}

// send sends a request.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var body io.Reader
	kind := "application/json"
	if r.file != nil {
		body, kind = r.file, r.kind
	} else if r.body != nil {
		raw, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	if r.prefer != "" {
		req.Header.Set("Prefer", r.prefer)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.gates {
		c.gateHeaders(req.Header)
	}
	if c.opts.Language != "" {
		req.Header.Set("Accept-Language", c.opts.Language)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return resp, nil
}

// problemOf reads a problem document, or makes one of what a proxy said.
func problemOf(resp *http.Response, raw []byte) error {
	e := &Error{}
	if json.Unmarshal(raw, &e.Problem) != nil || e.Reason == "" {
		e.Problem = api.Problem{Title: http.StatusText(resp.StatusCode), Detail: "the answer is not from dibs"}
	}
	e.Status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}
