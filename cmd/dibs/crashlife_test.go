package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

const (
	lifeUnits = 400
	// lifeSteps is how many steps a round must have had answered to count.
	lifeSteps = 30
)

// lifeStep is a step of a claim that was sent, by a name that makes it happen
// once. It is answered when its claim's status is known.
type lifeStep struct {
	id, step string
	status   string
}

// TestKillLife kills the server while users claim, pay, cancel and are refunded,
// and unpaid claims expire. What was answered is found afterwards; what was not
// is sent again and answered; and at the end each unit is paid once or for sale.
func TestKillLife(t *testing.T) { killLife(t, "", (rounds(t)+1)/2) }

func killLife(t *testing.T, ledger string, n int) {
	seed := killSeed(t)
	t.Logf("seed %d, %d rounds", seed, n)
	c := &crashes{t: t, r: rand.New(rand.NewPCG(seed, 0)), data: t.TempDir(), ledger: ledger}
	c.restart()
	c.publishLife()
	answered, unanswered := 0, 0
	for range n {
		steps := c.lifeRound()
		for _, s := range steps {
			if s.status == "" {
				unanswered++
			} else {
				answered++
			}
		}
		c.checkLife(steps)
	}
	c.afterLife()
	t.Logf("%d steps answered, %d not", answered, unanswered)
}

// publishLife opens the campaign whose claims live.
func (c *crashes) publishLife() {
	c.t.Helper()
	admin := clitest.Admin(c.t, c.url)
	units, within := int64(lifeUnits), dibs.Duration(time.Second)
	_, err := admin.Campaigns.Create(c.t.Context(), dibs.CampaignSpec{
		ID: "life", Kind: dibs.Sale, Title: "Life", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 500, Currency: "CNY"}, PayWithin: &within,
	}, "")
	if err == nil {
		_, err = admin.Campaigns.Publish(c.t.Context(), "life")
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// lifeRound loads the server until enough steps were answered, kills it at a
// random moment and starts it again.
func (c *crashes) lifeRound() []lifeStep {
	var mu sync.Mutex
	var steps []lifeStep
	quota := lifeSteps + c.r.IntN(150)
	seed := c.r.Uint64()
	enough := make(chan struct{})
	var done atomic.Int64
	var users sync.WaitGroup
	transport := client.NewTransport()
	defer transport.CloseIdleConnections()
	url := c.url
	for u := range loaders {
		users.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(u)))
			for {
				p := press{campaign: "life", user: "u" + strconv.FormatInt(c.users.Add(1), 10), key: "k"}
				if err := p.send(context.Background(), url, transport); err != nil {
					return
				}
				if p.id == "" {
					continue
				}
				s := lifeStep{id: p.id, step: []string{"confirm", "confirm", "refund", "cancel", "expire"}[r.IntN(5)]}
				err := s.take(url, transport)
				mu.Lock()
				steps = append(steps, s)
				mu.Unlock()
				if err != nil {
					return
				}
				if done.Add(1) == int64(quota) {
					close(enough)
				}
			}
		})
	}
	<-enough
	c.server.kill()
	users.Wait()
	c.restart()
	return steps
}

// take takes the step; an error means that no answer came. A step that came too
// late is answered too: the claim's status is what the server says.
func (s *lifeStep) take(url string, transport http.RoundTripper) error {
	admin, err := client.New(url, client.Options{AdminKey: clitest.Key, HTTPClient: &http.Client{Transport: transport, Timeout: clitest.Patience}})
	if err != nil {
		return err
	}
	ctx := context.Background()
	paid := dibs.PaymentSpec{PaymentRef: "pay-" + s.id, Amount: &dibs.Money{Amount: 500, Currency: "CNY"}}
	var v api.ClaimView
	switch s.step {
	case "cancel":
		v, _, err = admin.Orders.Cancel(ctx, s.id, "cancel-"+s.id)
	case "confirm", "refund":
		v, _, err = admin.Orders.Confirm(ctx, s.id, paid)
		if err == nil && s.step == "refund" && v.Status != "released" {
			s.id = v.ID
			v, _, err = admin.Orders.Refund(ctx, v.ID, dibs.RefundSpec{Restock: true}, "refund-"+v.ID)
		}
	default:
		v, err = admin.Orders.Get(ctx, s.id)
	}
	var refusal *client.Error
	if errors.As(err, &refusal) && refusal.Reason == dibs.InvalidState.String() {
		// It has expired before it could be cancelled.
		v, err = admin.Orders.Get(ctx, s.id)
	}
	if err == nil {
		s.id, s.status = v.ID, v.Status
	}
	return err
}

// checkLife looks for every step that was answered, and takes the others again.
func (c *crashes) checkLife(steps []lifeStep) {
	c.t.Helper()
	admin, transport := clitest.Admin(c.t, c.url), client.NewTransport()
	defer transport.CloseIdleConnections()
	for _, s := range steps {
		if s.status == "" {
			again := s
			if err := again.take(c.url, transport); err != nil {
				c.t.Fatalf("the %s of %s again: %v", s.step, s.id, err)
			}
			s = again
		}
		v, err := admin.Orders.Get(c.t.Context(), s.id)
		if err != nil || v.Status != s.status && s.status != "pending" {
			c.t.Fatalf("the %s of %s was answered %s, and the claim is %+v, %v", s.step, s.id, s.status, v, err)
		}
		if v.Status != "confirmed" {
			continue
		}
		// The next round needs the stock.
		if _, _, err := admin.Orders.Refund(c.t.Context(), s.id, dibs.RefundSpec{Restock: true}, "back-"+s.id); err != nil {
			c.t.Fatalf("refund %s: %v", s.id, err)
		}
	}
}

// afterLife waits until nothing is pending, compares, and ends the server.
func (c *crashes) afterLife() {
	c.t.Helper()
	c.lived()
	c.server.signal(c.t, syscall.SIGTERM)
	if code := c.server.code(c.t); code != 0 {
		c.t.Errorf("exit code %d at the end", code)
	}
	execute(c.t, nil, append([]string{"verify", "--data", c.data}, c.where()...)...).Want(c.t, 0, "every promise holds")
}

// lived waits until nothing is pending, and each unit is paid or for sale.
func (c *crashes) lived() {
	c.t.Helper()
	admin := clitest.Admin(c.t, c.url)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var st api.StatsView
	for until := time.Now().Add(clitest.Patience); ; <-tick.C {
		var err error
		if st, err = admin.Campaigns.Stats(c.t.Context(), "life"); err != nil {
			c.t.Fatal(err)
		}
		if st.Pending == 0 && st.Remaining+st.Confirmed == lifeUnits {
			break
		}
		if time.Now().After(until) {
			c.t.Fatalf("at the end: %+v", st)
		}
	}
}
