package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// openConsoles is how many consoles watch a rush, and maxSlower how much more a claim may cost the server then, as a share.
const (
	openConsoles = 10
	maxSlower    = 0.02
)

// A rush has rushClaims claims, which take about a second: the processor time is told in hundredths of a second, and one
// of them must be less than maxSlower. There are rushPairs pairs of rushes, one with consoles and one without; which of the
// two comes first changes. The speed of a machine changes from second to second, so that only neighbours compare.
const (
	rushClaims = 40_000
	rushPairs  = 15
)

// presses sends claims to a server that a number of consoles are open on.
type presses struct {
	url, key string
	client   *http.Client
	// claims is how many a rush has.
	claims int
	// sent is how many claims were sent: each is another user's.
	sent atomic.Int64
}

// consoles prints what ten open consoles cost a rush, and returns it as a fault when it is too much. It compares the
// processor time of a claim, from the first press to the last row in the ledger: on a machine that does nothing else, that
// is what a rush is as fast as.
func consoles(ctx context.Context, b *browser, url string) (faults []string, err error) {
	key, err := makeLive(b)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: claiming + 2*openConsoles}
	defer transport.CloseIdleConnections()
	r := &presses{url: url, key: key, claims: rushClaims, client: &http.Client{Transport: transport}}
	// The first one warms up, and does not count.
	if _, err := r.turn(ctx, 0); err != nil {
		return nil, err
	}
	var slower, alone []float64
	for i := range rushPairs {
		var cost [2]float64
		for _, open := range []int{i % 2, 1 - i%2} {
			if cost[open], err = r.turn(ctx, open*openConsoles); err != nil {
				return nil, err
			}
		}
		slower, alone = append(slower, cost[1]/cost[0]-1), append(alone, cost[0])
	}
	m := middle(slower)
	fmt.Printf("%d consoles open in a rush: a claim costs %+.1f %% of the %.0f µs that it costs without (half of %d pairs lie from %+.1f to %+.1f %%)\n",
		openConsoles, m*100, middle(alone)*1e6, rushPairs, slower[len(slower)/4]*100, slower[len(slower)*3/4]*100)
	return consoleFaults(m), nil
}

// consoleFaults says that consoles slow a rush too much, when they do.
func consoleFaults(slower float64) []string {
	if slower <= maxSlower {
		return nil
	}
	return []string{fmt.Sprintf("%d open consoles slow a rush by %.1f %%, at most %.0f %%", openConsoles, slower*100, maxSlower*100)}
}

// middle sorts values and returns the median.
func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// turn is a rush beside some open consoles. It returns the processor time of a claim, in seconds.
func (r *presses) turn(ctx context.Context, open int) (cost float64, err error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	all, watching := errgroup.WithContext(watching)
	var following atomic.Int64
	for range open {
		all.Go(func() error { return r.follow(watching, &following) })
		all.Go(func() error { return r.poll(watching) })
	}
	for deadline := time.Now().Add(patience); following.Load() < int64(open); {
		if time.Now().After(deadline) || watching.Err() != nil {
			stop()
			return 0, errors.Join(fmt.Errorf("only %d of %d consoles are open", following.Load(), open), all.Wait(), ctx.Err())
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	before, err := processorTime(ctx, r.url)
	if err == nil {
		err = r.press(ctx)
	}
	if err == nil {
		err = r.settled(ctx)
	}
	if err != nil {
		return 0, err
	}
	after, err := processorTime(ctx, r.url)
	stop()
	return (after - before) / float64(r.claims), errors.Join(err, all.Wait())
}

// press sends the claims of a rush, as fast as they are answered.
func (r *presses) press(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(claiming)
	for range r.claims {
		user := "r" + strconv.FormatInt(r.sent.Add(1), 10)
		all.Go(func() error { return claimAs(ctx, r.client, r.url, user) })
	}
	return all.Wait()
}

// settled waits until everything that was granted is in the ledger.
func (r *presses) settled(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; {
		var ready struct {
			Backlog *int64 `json:"journal_backlog"`
		}
		if err := r.get(ctx, "/readyz", func(body io.Reader) error { return json.NewDecoder(body).Decode(&ready) }); err != nil {
			return err
		}
		switch {
		case ready.Backlog == nil:
			return errors.New("the server does not tell what waits to be settled")
		case *ready.Backlog == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%d entries were not settled", *ready.Backlog)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// follow reads the measures of the campaign until ctx ends, as its live screen does.
func (r *presses) follow(ctx context.Context, following *atomic.Int64) error {
	err := r.get(ctx, "/v1/campaigns/live/stats/stream", func(body io.Reader) error {
		following.Add(1)
		_, err := io.Copy(io.Discard, body)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(errors.New("a stream has ended"), err)
}

// pollEvery is how often a live screen asks for what does not come as a stream.
const pollEvery = 5 * time.Second

// poll asks for the newest holders, and for the campaign, until ctx ends.
func (r *presses) poll(ctx context.Context) error {
	for {
		for _, path := range []string{"/v1/claims?campaign_id=live&limit=10", "/v1/campaigns/live"} {
			err := r.get(ctx, path, func(body io.Reader) error {
				_, err := io.Copy(io.Discard, body)
				return err
			})
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if pause(ctx, pollEvery) != nil {
			return nil
		}
	}
}

// get reads what an address answers with the key of an administrator.
func (r *presses) get(ctx context.Context, path string, read func(io.Reader) error) error {
	return fetch(ctx, r.client, r.url+path, r.key, read)
}

// fetch reads what a server answers at an address, with an API key if there is one.
func fetch(ctx context.Context, client *http.Client, url, key string, read func(io.Reader) error) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if key != "" {
		q.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := client.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", q.URL.RequestURI(), answer.Status)
	}
	return read(answer.Body)
}
