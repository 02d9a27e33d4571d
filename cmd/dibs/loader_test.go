package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/wait"
)

// press is one claim that was sent, and what came back.
type press struct {
	campaign, user, key string
	// id is set when the claim was granted, refused when it was refused; neither
	// when no answer came.
	id, refused string
}

// loader presses for ever new users until it is stopped.
type loader struct {
	url       string
	campaigns []string
	// users counts the users of all rounds.
	users *atomic.Int64
	// enough is closed when this many claims were granted.
	granted  atomic.Int64
	enough   chan struct{}
	quota    int64
	mu       sync.Mutex
	presses  []press
	failures []error
}

// loaders is how many press at the same time.
const loaders = 16

// breath is how long each of them rests between two presses, so that what has to go on meanwhile has
// processors to go on with. Long campaigns press without a rest.
var breath = map[bool]time.Duration{true: 5 * time.Millisecond}[os.Getenv("SOAK") == ""]

func newLoader(url string, users *atomic.Int64, quota int64, campaigns ...string) *loader {
	return &loader{url: url, campaigns: campaigns, users: users, quota: quota, enough: make(chan struct{})}
}

// run presses until ctx ends or the server stops to answer.
func (l *loader) run(ctx context.Context) {
	var all sync.WaitGroup
	transport := client.NewTransport()
	defer transport.CloseIdleConnections()
	for range loaders {
		all.Go(func() {
			for ctx.Err() == nil && l.press(ctx, transport) {
				wait.Sleep(ctx, breath)
			}
		})
	}
	all.Wait()
}

// runOn runs until ctx ends, and again when no server answered. Without a pause it would press
// tens of thousands of times while the servers are away, and each press is judged in the end.
func (l *loader) runOn(ctx context.Context) {
	for wait.Sleep(ctx, 50*time.Millisecond) {
		l.run(ctx)
	}
}

// begin runs the loader in the background until ctx ends or the server stops to answer,
// and returns when enough claims are granted. wait returns when the loader has ended.
func (l *loader) begin(ctx context.Context, t *testing.T) (wait func()) {
	t.Helper()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.run(ctx)
	}()
	select {
	case <-l.enough:
	case <-stopped:
		t.Fatalf("the load ended before enough was granted: %v", l.failures)
	}
	return func() { <-stopped }
}

// press sends one claim and reports whether an answer came.
func (l *loader) press(ctx context.Context, transport http.RoundTripper) bool {
	n := l.users.Add(1)
	p := press{campaign: l.campaigns[n%int64(len(l.campaigns))], user: "u" + strconv.FormatInt(n, 10), key: "k" + strconv.FormatInt(n, 10)}
	// What is under way is waited for, so that the context is not handed on.
	err := p.send(context.WithoutCancel(ctx), l.url, transport)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.presses = append(l.presses, p)
	if err != nil {
		l.failures = append(l.failures, err)
		return false
	}
	if p.id != "" && l.granted.Add(1) == l.quota {
		close(l.enough)
	}
	return true
}

// send claims; an error means that no answer came, or one that says nothing.
func (p *press) send(ctx context.Context, url string, transport http.RoundTripper) error {
	token, err := httpapi.IssueToken([]byte(clitest.Secret), p.user, time.Hour)
	if err != nil {
		return err
	}
	c, err := client.New(url, client.Options{Token: token, HTTPClient: &http.Client{Transport: transport, Timeout: clitest.Patience}})
	if err != nil {
		return err
	}
	claim, _, err := c.Claim(ctx, p.campaign, 1, p.key)
	var refusal *client.Error
	switch {
	case err == nil:
		if claim.UserID != p.user || claim.CampaignID != p.campaign {
			return fmt.Errorf("asked for %s by %s, got %+v", p.campaign, p.user, claim)
		}
		p.id = claim.ID
	case errors.As(err, &refusal) && refusal.Reason == dibs.SoldOut.String():
		p.refused = refusal.Reason
	default:
		return err
	}
	return nil
}

// claimsOf reads all claims of a campaign: users by claim id.
func claimsOf(t *testing.T, api *client.Client, campaign string) map[string]string {
	t.Helper()
	var raw bytes.Buffer
	if err := api.Campaigns.ClaimsCSV(t.Context(), campaign, client.ClaimFilter{}, &raw); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&raw).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	claims := make(map[string]string, len(rows))
	users := make(map[string]bool, len(rows))
	for _, r := range rows[1:] {
		id, user := r[0], r[3]
		if claims[id] != "" || users[user] {
			t.Errorf("claim %s of user %s in %s is there twice", id, user, campaign)
		}
		claims[id], users[user] = user, true
	}
	return claims
}
