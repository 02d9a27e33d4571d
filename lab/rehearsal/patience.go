package rehearsal

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// patience asks again, after the load, for what a server cannot answer for the
// moment: a promise is judged by what the server says once it can. It gives up on a
// request after a time of its own, and on a server that has answered nothing at all
// for as long. Safe for concurrent use.
type patience struct {
	most time.Duration
	// heard is when the server answered last, from the epoch in nanoseconds.
	heard atomic.Int64
}

func newPatience(most time.Duration) *patience {
	p := &patience{most: most}
	p.heard.Store(time.Now().UnixNano())
	return p
}

// keep calls try until it says that there is nothing to wait for, or until the
// time is over; at least once.
// A server that answers anything is worth waiting for; one that is silent for as long
// as the patience is given up by all requests at once.
func (p *patience) keep(ctx context.Context, try func(context.Context) (again bool)) {
	begin := time.Now()
	// The caller keeps what try found; when ctx has ended it is the last of it.
	_ = retry.Do(ctx, pauses(), func(ctx context.Context) error {
		again := try(ctx)
		now := time.Now()
		if !again {
			p.heard.Store(now.UnixNano())
			return nil
		}
		if now.Sub(begin) >= p.most || now.Sub(time.Unix(0, p.heard.Load())) >= p.most {
			return nil
		}
		return retry.RetryableError(errUnknownEffect)
	})
}

// pauses grow and vary.
func pauses() retry.Backoff {
	return retry.WithCappedDuration(longestWait, retry.WithJitterPercent(pauseVaries, retry.NewExponential(firstPause)))
}

// passing reports whether a server refused without a look at the request, for a
// reason that passes. A proxy that finds no server says so by its status alone.
func passing(e *client.Error) bool {
	switch e.Reason {
	case dibs.Unavailable.String(), dibs.Overloaded.String(), dibs.RateLimited.String():
		return true
	case "":
		return e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout
	}
	return false
}

// patient is a server that is asked with patience. Its claims have a key.
type patient struct {
	server
	patience *patience
}

// claim sends a request until the server has looked at it.
func (s patient) claim(ctx context.Context, req dibs.ClaimRequest) (a answer, err error) {
	err = context.Cause(ctx)
	s.patience.keep(ctx, func(ctx context.Context) bool {
		a, err = s.server.claim(ctx, req)
		return err != nil || a.again
	})
	return a, err
}

// read asks for one thing. It asks again, too, when the answer is not a server's.
func read[T any](ctx context.Context, p *patience, get func(context.Context) (T, error)) (v T, err error) {
	err = context.Cause(ctx)
	p.keep(ctx, func(ctx context.Context) bool {
		v, err = get(ctx)
		var refusal *client.Error
		return err != nil && (!errors.As(err, &refusal) || passing(refusal))
	})
	return v, err
}

func (s patient) find(ctx context.Context, user, id string) (*api.ClaimView, error) {
	return read(ctx, s.patience, func(ctx context.Context) (*api.ClaimView, error) { return s.server.find(ctx, user, id) })
}

func (s patient) claims(ctx context.Context, campaign, cursor string) (api.ListView[api.ClaimView], error) {
	return read(ctx, s.patience, func(ctx context.Context) (api.ListView[api.ClaimView], error) {
		return s.server.claims(ctx, campaign, cursor)
	})
}

func (s patient) stats(ctx context.Context, campaign string) (api.StatsView, error) {
	return read(ctx, s.patience, func(ctx context.Context) (api.StatsView, error) { return s.server.stats(ctx, campaign) })
}

func (s patient) verify(ctx context.Context, campaign string) (audit.Report, error) {
	return read(ctx, s.patience, func(ctx context.Context) (audit.Report, error) { return s.server.verify(ctx, campaign) })
}

func (s patient) end(ctx context.Context, id string) error {
	_, err := read(ctx, s.patience, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.server.end(ctx, id) })
	return err
}
