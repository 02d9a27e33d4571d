package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
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
	// to the server and has no timeout of its own: contexts bound the calls. Its
	// CheckRedirect is not used: no redirect is followed, because the API has none and
	// whoever sends one would receive the credentials.
	HTTPClient *http.Client
}

// maxAnswer bounds what is read of an answer that is no stream.
const maxAnswer = 64 << 20

// caller sends the calls of a Client and of its parts, which share one. It is never
// changed: a client with other options has another one, over the same connections.
type caller struct {
	base string
	opts Options
	http *http.Client
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
	// file is a body that is CSV, not JSON; headers are further headers, in pairs as setGiven takes them.
	file    io.Reader
	headers []string
}

// do sends a request and decodes its answer into out, unless that is nil. It
// reports whether the answer is a repeat of the first one.
func (c *caller) do(ctx context.Context, r request, out any) (replayed bool, err error) {
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
	if resp.StatusCode == http.StatusAccepted {
		// An erasure is answered so as well, with a view of it.
		waits := &Pending{}
		if json.Unmarshal(raw, waits) == nil && waits.ApprovalID != "" {
			return false, waits
		}
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			return false, fmt.Errorf("client: %s %s: the answer: %w", r.method, r.path, err)
		}
	}
	return resp.Header.Get("Idempotent-Replayed") == "true", nil
}

// send sends a request.
func (c *caller) send(ctx context.Context, r request) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var body io.Reader
	kind := "application/json"
	if r.file != nil {
		body, kind = r.file, "text/csv"
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
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	setGiven(req.Header, "Idempotency-Key", r.key, "Accept-Language", c.opts.Language)
	setGiven(req.Header, r.headers...)
	if r.gates {
		setGiven(req.Header, "Dibs-Ticket", c.opts.Ticket, "Dibs-Admission", c.opts.Admission)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return resp, nil
}

// setGiven sets headers, or parameters of a query: of each pair of a name and a value, the value
// unless it is empty.
func setGiven(in interface{ Set(name, value string) }, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			in.Set(pairs[i], pairs[i+1])
		}
	}
}

// csv writes a list as CSV, of any length, to w.
func (c *caller) csv(ctx context.Context, path string, query url.Values, w io.Writer) error {
	query.Set("format", "csv")
	resp, err := c.send(ctx, request{method: http.MethodGet, path: path, query: query, token: c.opts.AdminKey})
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return fmt.Errorf("client: GET %s: %w", path, err)
		}
		return problemOf(resp, raw)
	}
	_, err = io.Copy(w, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("client: GET %s: the stream broke: %w", path, err)
	}
	return nil
}

// admin sends an admin call and returns what was answered.
func admin[T any](ctx context.Context, c *caller, method, path, key string, body any) (v T, err error) {
	_, err = c.do(ctx, request{method: method, path: path, token: c.opts.AdminKey, key: key, body: body}, &v)
	return v, err
}

// user sends a user's call and returns what was answered.
func user[T any](ctx context.Context, c *caller, method, path string, body any) (v T, err error) {
	_, err = c.do(ctx, request{method: method, path: path, token: c.opts.Token, body: body}, &v)
	return v, err
}

// change sends a POST and returns what was answered, and whether that repeats an earlier answer.
func change[T any](ctx context.Context, c *caller, r request) (v T, replayed bool, err error) {
	r.method = http.MethodPost
	replayed, err = c.do(ctx, r, &v)
	return v, replayed, err
}

// get asks for something.
func get[T any](ctx context.Context, c *caller, path string, query url.Values, token string) (v T, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: path, query: query, token: token}, &v)
	return v, err
}

// list asks for a page of a list.
func list[T any](ctx context.Context, c *caller, path string, query url.Values, token string) (api.ListView[T], error) {
	return get[api.ListView[T]](ctx, c, path, query, token)
}

// pageQuery asks for a page; more are further parameters, in pairs as setGiven takes them.
func pageQuery(p dibs.Page, more ...string) url.Values {
	q := url.Values{}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	setGiven(q, "cursor", p.Cursor)
	setGiven(q, more...)
	return q
}

// timeText is a time as queries have it, empty for none.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// withProgress asks the server for progress, unless done is nil.
func withProgress(ctx context.Context, r *request, done func(written int64)) context.Context {
	if done == nil {
		return ctx
	}
	r.headers = []string{"Prefer", "progress"}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		if n, err := strconv.ParseInt(h.Get("Dibs-Imported"), 10, 64); err == nil {
			done(n)
		}
		return nil
	}})
}

// problemOf reads a problem document, or makes one of what a proxy said.
func problemOf(resp *http.Response, raw []byte) error {
	e := &Error{}
	if json.Unmarshal(raw, &e.Problem) != nil || e.Reason == "" {
		e.Problem = api.Problem{Title: http.StatusText(resp.StatusCode), Detail: "the answer is not from dibs"}
		if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
			e.Detail = fmt.Sprintf("redirects are not followed; this one leads to %q", to)
		}
	}
	e.Status = resp.StatusCode
	e.RetryAfter, _ = waitOf(resp.Header.Get("Retry-After"), time.Second)
	return e
}

// longestWait bounds how long a server may ask to wait: it may be a proxy that is at fault.
const longestWait = 24 * time.Hour

// waitOf reads a number of units that a server asks to wait, longestWait at most; false for anything but a number of 0
// or more.
func waitOf(text string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return time.Duration(min(n, uint64(longestWait/unit))) * unit, true
}
