//go:build soak

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	chaosStock   = 4000
	chaosPresses = 24
	chaosFaults  = 4
	// chaosPatience bounds what has to come right by itself once the faults are
	// over.
	chaosPatience = time.Minute
)

// TestChaos has users press on three nodes, and an admin change the stock, while
// Redis, the database and the nodes are killed, frozen and emptied, several in a
// round, in any order. Afterwards everything is sold, to the users that were told
// so, once, and nothing else.
func TestChaos(t *testing.T) {
	for _, level := range []string{dibs.LevelDurable, dibs.LevelLedgered} {
		t.Run(level, func(t *testing.T) {
			seed := killSeed(t)
			t.Logf("DIBS_KILL_SEED=%d", seed)
			db, err := servers.MariaDB()
			if err != nil {
				t.Fatal(err)
			}
			x := &chaos{
				cluster: newCluster(t, servers.MariaDB, 3, "--durability", level),
				r:       rand.New(rand.NewPCG(seed, 0)), db: db, level: level,
			}
			for n := range max(2, rounds(t)/30) {
				x.round(n)
				if t.Failed() {
					t.Fatalf("round %d: %s", n, strings.Join(x.faults, ", "))
				}
			}
			x.drain()
		})
	}
}

type chaos struct {
	*cluster
	r      *rand.Rand
	db     *servers.Server
	level  string
	faults []string
}

// round sells one campaign.
func (x *chaos) round(n int) {
	id := "c" + strconv.Itoa(n)
	x.offer(n, id)
	crowd := x.press(id)
	added := make(chan int64, 1)
	go func() { added <- x.changes(id) }()
	x.faults = x.faults[:0]
	for range chaosFaults {
		x.wait(200, 1100)
		x.fault()
	}
	stock := chaosStock + <-added
	over := time.Now()
	x.t.Logf("round %d: %s", n, strings.Join(x.faults, ", "))
	for i := range x.nodes {
		eventually(x.t, chaosPatience, fmt.Sprintf("node %d is ready", i), func(ctx context.Context) bool {
			health, err := x.admin(i).Health(ctx)
			return err == nil && health.Ready
		})
	}
	ready := time.Since(over)
	before := crowd.refused.Load()
	eventually(x.t, chaosPatience, "everything is sold", func(context.Context) bool { return crowd.refused.Load() > before+50 })
	crowd.end()
	all := map[string]string{}
	x.collect(crowd.presses, all)
	x.compare(id, all, stock)
	x.verify()
	x.t.Logf("round %d: ready %s after the last fault, %d granted of %d, %d pressed", n, ready.Round(time.Millisecond), len(all), stock, len(crowd.presses))
	if _, err := x.admin(n%3).Campaigns.End(x.t.Context(), id); err != nil {
		x.t.Error(err)
	}
}

// offer publishes units, or codes, at one node what was made at another.
func (x *chaos) offer(n int, id string) {
	stock := int64(chaosStock)
	spec := dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &stock},
	}
	if n%2 == 1 {
		spec.Kind, spec.Stock = dibs.Coupon, dibs.StockSpec{Codes: &dibs.CodesSpec{Count: stock, Pattern: "XXXX-XXXX-XXXX"}}
	}
	eventually(x.t, chaosPatience, id+" is there", func(ctx context.Context) bool {
		_, err := x.admin(n%3).Campaigns.Create(ctx, spec, "create-"+id)
		return err == nil
	})
	eventually(x.t, chaosPatience, id+" is published", func(ctx context.Context) bool {
		_, err := x.admin((n+1)%3).Campaigns.Publish(ctx, id)
		return err == nil
	})
}

// wait lets some milliseconds pass, by chance.
func (x *chaos) wait(least, most int) {
	timer := time.NewTimer(time.Duration(least+x.r.IntN(most-least)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.t.Context().Done():
	}
}

func (x *chaos) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// fault does something to Redis, the database, or a node, and undoes it.
func (x *chaos) fault() {
	n := x.nodes[x.r.IntN(len(x.nodes))]
	faults := []struct {
		name string
		do   func()
	}{
		{"Redis killed", func() { x.redis.Kill(); x.wait(0, 1500); x.must(x.redis.Start()) }},
		{"Redis frozen", func() { x.must(x.redis.Freeze()); x.wait(300, 4300); x.must(x.redis.Thaw()) }},
		{"node killed", func() { n.kill(); x.start(n, "--durability", x.level) }},
		{"node frozen", func() { n.signal(x.t, syscall.SIGSTOP); x.wait(500, 6500); n.signal(x.t, syscall.SIGCONT) }},
		{"database killed", func() { x.db.Kill(); x.wait(0, 2000); x.must(x.db.Start()) }},
		{"Redis and node killed", func() { x.redis.Kill(); n.kill(); x.must(x.redis.Start()); x.start(n, "--durability", x.level) }},
		{"Redis emptied", func() { x.redisCLI("FLUSHALL") }},
	}
	if x.level != dibs.LevelLedgered {
		// Below that level, what is not settled is lost with Redis.
		faults = faults[:len(faults)-1]
	}
	f := faults[x.r.IntN(len(faults))]
	x.faults = append(x.faults, f.name)
	f.do()
}

// changes moves the stock up and down and returns by how much in all.
func (x *chaos) changes(id string) (sum int64) {
	for i := range 6 {
		by := int64(50)
		if i%2 == 1 {
			by = -20
		}
		ref := fmt.Sprintf("%s-%d", id, i)
		for try, until := 0, time.Now().Add(2*time.Minute); ; try++ {
			ctx, cancel := context.WithTimeout(x.t.Context(), 10*time.Second)
			_, err := x.admin((i+try)%3).Campaigns.ChangeStock(ctx, id, dibs.StockChange{Delta: by}, ref)
			cancel()
			var refusal *client.Error
			if err == nil {
				sum += by
			}
			// A withdrawal from nothing is refused for good.
			if err == nil || errors.As(err, &refusal) && refusal.Reason == dibs.InvalidState.String() {
				break
			}
			if time.Now().After(until) || !wait.Sleep(x.t.Context(), 10*time.Millisecond) {
				x.t.Errorf("the change %s does not come through: %v", ref, err)
				return sum
			}
		}
	}
	return sum
}

// chaosCrowd claims for ever new users. Each repeats its claim at one node after the
// other until it has an answer.
type chaosCrowd struct {
	stop    context.CancelFunc
	all     sync.WaitGroup
	mu      sync.Mutex
	presses []press
	users   atomic.Int64
	refused atomic.Int64
}

func (c *cluster) press(id string) *chaosCrowd {
	ctx, stop := context.WithCancel(c.t.Context())
	crowd := &chaosCrowd{stop: stop}
	c.t.Cleanup(crowd.end)
	for range chaosPresses {
		crowd.all.Go(func() {
			transport := client.NewTransport()
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				u := crowd.users.Add(1)
				p := press{campaign: id, user: fmt.Sprint(id, "-u", u), key: "k"}
				for try := u; p.id == "" && p.refused == "" && ctx.Err() == nil; try++ {
					within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
					// What is not answered is sent again.
					_ = p.send(within, c.nodes[try%int64(len(c.nodes))].url(), transport)
					cancel()
				}
				crowd.mu.Lock()
				crowd.presses = append(crowd.presses, p)
				crowd.mu.Unlock()
				if p.refused != "" {
					crowd.refused.Add(1)
				}
			}
		})
	}
	return crowd
}

func (c *chaosCrowd) end() {
	c.stop()
	c.all.Wait()
}

// compare holds what the ledger has against what users were told.
func (c *cluster) compare(id string, told map[string]string, stock int64) {
	c.t.Helper()
	kept := claimsOf(c.t, c.admin(0), id)
	for claim, user := range told {
		if kept[claim] != user {
			c.t.Errorf("claim %s of user %s is lost", claim, user)
		}
	}
	if len(kept) != len(told) || int64(len(kept)) != stock {
		c.t.Errorf("%d claims are kept, %d users were told yes, the stock was %d", len(kept), len(told), stock)
	}
}
