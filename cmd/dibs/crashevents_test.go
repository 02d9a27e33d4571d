package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// TestKillEvents kills the server at random moments while claims live and their
// events go to a stream, whose Redis is killed too, and to a webhook. At the end
// both have had every event, each claim's in order once repeats are left out.
func TestKillEvents(t *testing.T) { killEvents(t, "", (rounds(t)+4)/5) }

// killEvents does it n times. The ledger is in a server, or in files when the
// address is empty.
func killEvents(t *testing.T, ledger string, n int) {
	seed := killSeed(t)
	t.Logf("seed %d, %d rounds", seed, n)
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Kill()
	hook := &clitest.Webhook{}
	receiver := httptest.NewServer(hook)
	defer receiver.Close()
	defer receiver.CloseClientConnections()
	c := &crashes{
		t: t, r: rand.New(rand.NewPCG(seed, 0)), data: t.TempDir(), ledger: ledger,
		more: []string{"--events", redis.URL() + "?stream=shop", "--webhook-allow-private"},
	}
	c.restart()
	var e webhooks.EndpointView
	hook.SetSecret(func() string {
		if e, err = clitest.Admin(t, c.url).Webhooks.Create(t.Context(), webhooks.EndpointSpec{URL: receiver.URL}, ""); err != nil {
			t.Error(err)
		}
		return e.Secret
	})
	// The sink begins with what happens once it is there.
	c.published(func(v *events.SinkView) bool { return v.Owner != "" })
	c.publishLife()
	for i := range n {
		if i%2 == 1 {
			redis.Kill()
		}
		steps := c.lifeRound()
		if i%2 == 1 {
			if err := redis.Start(); err != nil {
				t.Fatal(err)
			}
		}
		c.checkLife(steps)
		if t.Failed() {
			t.Fatalf("round %d of seed %d failed", i+1, seed)
		}
	}
	c.lived()
	c.published(func(v *events.SinkView) bool { return v.OK && v.Behind == 0 })
	c.posted(e.ID)
	m, err := redis.Do(t.Context(), "XRANGE", "shop", "-", "+")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := m.AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	var streamed []string
	for _, one := range entries {
		streamed = append(streamed, one.FieldValues["event"])
	}
	c.sawAll("the stream", streamed)
	posted, faults := hook.Took()
	for _, err := range faults {
		t.Errorf("the webhook: %v", err)
	}
	c.sawAll("the webhook", posted)
	c.afterLife()
}

// published waits until both sinks are as they should be.
func (c *crashes) published(holds func(*events.SinkView) bool) {
	c.t.Helper()
	api := clitest.Admin(c.t, c.url)
	c.until("sinks", func() (string, bool) {
		v, err := api.Events.Sinks(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		return fmt.Sprintf("%+v", v.Items), len(v.Items) == 2 && holds(&v.Items[0]) && holds(&v.Items[1])
	})
}

// posted waits until nothing waits for the endpoint.
func (c *crashes) posted(endpoint string) {
	c.t.Helper()
	api := clitest.Admin(c.t, c.url)
	c.until("deliveries", func() (string, bool) {
		v, err := api.Webhooks.Deliveries(c.t.Context(), endpoint, webhooks.DeliveryPending, dibs.Page{Limit: 10})
		if err != nil {
			c.t.Fatal(err)
		}
		return fmt.Sprintf("%+v", v.Items), len(v.Items) == 0
	})
}

// until waits for something, which says how it stands.
func (c *crashes) until(what string, holds func() (string, bool)) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for over := time.Now().Add(clitest.Patience); ; <-tick.C {
		state, ok := holds()
		if ok {
			return
		}
		if time.Now().After(over) {
			c.t.Fatalf("the %s stay %s", what, state)
		}
	}
}

// sawAll holds what a taker got against the ledger: all steps of all claims, in
// order, each the same when it came again.
func (c *crashes) sawAll(what string, bodies []string) {
	c.t.Helper()
	first, next, last := map[string]string{}, map[string]int{}, map[string]string{}
	for _, body := range bodies {
		var e events.Event
		var data events.ClaimEventData
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			c.t.Fatalf("%s: %q: %v", what, body, err)
		}
		if before, again := first[e.ID]; again {
			if before != body {
				c.t.Errorf("%s: the event %s came again and was another:\n%s\n%s", what, e.ID, before, body)
			}
			continue
		}
		first[e.ID] = body
		if !strings.HasPrefix(e.Type, events.EventTypePrefix+"claim.") {
			continue
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			c.t.Fatalf("%s: %q: %v", what, body, err)
		}
		if data.N != next[e.Subject] {
			c.t.Errorf("%s: event %d of claim %s came when %d was next", what, data.N, e.Subject, next[e.Subject])
		}
		next[e.Subject], last[e.Subject] = data.N+1, data.Claim.Status
	}
	for id, status := range c.statuses() {
		if last[id] != status {
			c.t.Errorf("%s: the claim %s is %s; after %d events it was %q", what, id, status, next[id], last[id])
		}
	}
	c.feedHas(what, first)
	c.t.Logf("%s got %d events, %d of them again", what, len(first), len(bodies)-len(first))
}

// statuses reads the status of every claim.
func (c *crashes) statuses() map[string]string {
	c.t.Helper()
	var raw bytes.Buffer
	if err := clitest.Admin(c.t, c.url).Campaigns.ClaimsCSV(c.t.Context(), "life", client.ClaimFilter{}, &raw); err != nil {
		c.t.Fatal(err)
	}
	rows, err := csv.NewReader(&raw).ReadAll()
	if err != nil {
		c.t.Fatal(err)
	}
	column := slices.Index(rows[0], "status")
	all := map[string]string{}
	for _, r := range rows[1:] {
		all[r[0]] = r[column]
	}
	if len(all) == 0 {
		c.t.Fatal("there are no claims")
	}
	return all
}

// feedHas holds the events that came against those that the ledger tells.
func (c *crashes) feedHas(what string, came map[string]string) {
	c.t.Helper()
	api := clitest.Admin(c.t, c.url)
	told := 0
	for after := int64(0); ; {
		list, next, err := api.Events.After(c.t.Context(), after)
		if err != nil {
			c.t.Fatal(err)
		}
		for i := range list {
			if came[list[i].ID] == "" {
				c.t.Errorf("%s: the event %s of %s is missing", what, list[i].ID, list[i].Subject)
			}
		}
		told += len(list)
		if next == after {
			break
		}
		after = next
	}
	if told != len(came) {
		c.t.Errorf("%s: the ledger tells %d events, and %d came", what, told, len(came))
	}
}
