package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// watchPause and watchLongest bound the pause before a stream is opened again.
	watchPause   = 500 * time.Millisecond
	watchLongest = 10 * time.Second
	// maxEventLine bounds one line of a stream.
	maxEventLine = 1 << 20
)

// errStop is what a stream ends with when the caller has heard enough.
var errStop = errors.New("client: heard enough")

// Watch calls tell with where a campaign stands, now and after each change,
// until tell returns false or ctx ends. It connects again by itself, and
// nothing is told twice. An *Error when there is no such campaign, and not when
// a proxy says that it reaches no node.
func (c Campaigns) Watch(ctx context.Context, campaign string, tell func(api.SnapshotView) bool) error {
	last, pause := "", watchPause
	for {
		rest, err := c.watchOnce(ctx, campaign, &last, tell)
		var e *Error
		switch {
		case errors.Is(err, errStop):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("client: watching %s: %w", campaign, ctx.Err())
		// A 502 to 504 without a reason is a proxy's: the node behind it will be back.
		case errors.As(err, &e) && !e.Retryable && (e.Reason != "" || e.Status < 500):
			return err
		case errors.As(err, &e):
			rest = max(e.RetryAfter, pause)
			pause = min(2*pause, watchLongest)
		case rest == 0:
			rest = pause/2 + rand.N(pause/2)
			pause = min(2*pause, watchLongest)
		default:
			pause = watchPause
		}
		wait.Sleep(ctx, rest)
	}
}

// watchOnce reads one stream to its end. rest is the pause that the server asks
// for, once it has said anything.
func (c Campaigns) watchOnce(ctx context.Context, campaign string, last *string, tell func(api.SnapshotView) bool) (rest time.Duration, err error) {
	resp, err := c.send(ctx, request{
		method: http.MethodGet, path: campaignPath(campaign) + "/events", headers: []string{"Accept", "text/event-stream", "Last-Event-ID", *last},
	})
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		if err != nil {
			return 0, fmt.Errorf("client: watching %s: %w", campaign, err)
		}
		return 0, problemOf(resp, raw)
	}
	rest, err = readEvents(resp.Body, func(id string, n api.SnapshotView) bool {
		*last = id
		return tell(n)
	})
	if err != nil && !errors.Is(err, errStop) {
		err = fmt.Errorf("client: watching %s: %w", campaign, err)
	}
	return rest, err
}

// readEvents calls tell for each snapshot of a stream, with its event's id, until the stream ends, or with errStop when
// tell returns false. rest is the pause that the server asks for before the stream is opened again.
func readEvents(stream io.Reader, tell func(id string, n api.SnapshotView) bool) (rest time.Duration, err error) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEventLine)
	var id, name, data string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if data != "" && name != "goaway" {
				var n api.SnapshotView
				if err := json.Unmarshal([]byte(data), &n); err != nil {
					return rest, fmt.Errorf("an event: %w", err)
				}
				if !tell(id, n) {
					return 0, errStop
				}
			}
			id, name, data = "", "", ""
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data = value
		case field == "retry":
			if asked, ok := waitOf(value, time.Millisecond); ok {
				rest = asked
			}
		}
	}
	return rest, lines.Err()
}
