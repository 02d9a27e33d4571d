package moving_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// more gives a campaign more shards through a node, also when it has to be said again.
func (f *fleet) more(n *node.Node, id string, shards int) *dibs.Campaign {
	f.Helper()
	for over := time.Now().Add(2 * time.Minute); ; {
		c, err := n.Campaigns.Patch(f.Context(), id, dibs.CampaignPatch{Shards: &shards})
		if err == nil {
			if c.Shards != shards {
				f.Fatalf("it has %d shards, want %d", c.Shards, shards)
			}
			return c
		}
		if time.Now().After(over) {
			f.Fatalf("%d shards: %v", shards, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// goesBy waits until a node knows that a campaign has so many shards.
func (f *fleet) goesBy(n *node.Node, id string, shards int) {
	f.Helper()
	for over := time.Now().Add(2 * time.Minute); ; {
		c, err := n.Campaigns.Get(f.Context(), id)
		if err == nil && c.Shards == shards {
			return
		}
		if time.Now().After(over) {
			f.Fatalf("a node goes by %v, %v", c, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// promised is what users were told of their claims, by user and key.
type promised struct {
	sync.Mutex
	at map[string]dibs.Position
}

// told notes a yes, and complains of another one than before.
func (p *promised) told(f *fleet, user, key string, r *dibs.Result) {
	p.Lock()
	defer p.Unlock()
	name := user + " " + key
	if before, known := p.at[name]; known && before != r.Claim.Position {
		f.Errorf("%s is told of %s, and was told of %s", name, r.Claim.Position, before)
	}
	p.at[name] = r.Claim.Position
}

// buyAll has each user claim a unit by each of three keys, of which the limit allows two,
// and repeat keys, until all have tried; beside it has the campaign changed meanwhile.
func (f *fleet) buyAll(c *dibs.Campaign, users int, p *promised, beside func()) {
	f.Helper()
	var all sync.WaitGroup
	for w := range 32 {
		all.Go(func() {
			for i := w; i < users; i += 32 {
				user := fmt.Sprintf("user-%d", i)
				for try := range 6 {
					key := fmt.Sprint("key-", try%3)
					n := f.nodes[rand.IntN(len(f.nodes))]
					r := f.claim(n, c, user, key, 1)
					switch {
					case r.Outcome == dibs.Granted:
						p.told(f, user, key, &r)
					case r.Outcome != dibs.LimitReached && r.Outcome != dibs.SoldOut:
						f.Errorf("%s with %s is told %v", user, key, r.Outcome)
					}
				}
			}
		})
	}
	beside()
	all.Wait()
}

// held counts the units that each user was told they have, and fails for a user with more
// than the limit.
func (p *promised) held(f *fleet, limit int) {
	f.Helper()
	of := map[string]int{}
	for name := range p.at {
		var user, key string
		if _, err := fmt.Sscan(name, &user, &key); err != nil {
			f.Fatal(err)
		}
		if of[user]++; of[user] > limit {
			f.Errorf("%s has %d units", user, of[user])
		}
	}
}

// TestMoreShardsWhileLive gives a sale of a Cluster more shards, twice, through different
// nodes, while users claim: no yes is lost or changes, no user gets more than the limit,
// and what is left on the first shards is sold to users of all. A master is killed while
// the second change is made.
func TestMoreShardsWhileLive(t *testing.T) {
	cluster := newCluster(t)
	f := newFleetOn(t, 2, cluster.URL(), dibs.LevelLedgered)
	const users = 1_500
	c := f.publish("sale", 2, 2*users, 2)
	_, master, err := cluster.Owner(t.Context(), fmt.Sprintf("dibs:{%d:0}:meta", c.Number))
	if err != nil {
		t.Fatal(err)
	}
	p := &promised{at: map[string]dibs.Position{}}
	f.buyAll(c, users, p, func() {
		f.more(f.nodes[0], c.ID, 3)
		master.Kill()
		c = f.more(f.nodes[1], c.ID, 7)
	})
	if len(p.at) != 2*users {
		t.Errorf("%d units were sold of %d", len(p.at), 2*users)
	}
	p.held(f, 2)
	// A repeat by each node finds the same claim, wherever its user would be by now.
	for i := range 200 {
		for _, n := range f.nodes {
			for try := range 2 {
				user, key := fmt.Sprintf("user-%d", i), fmt.Sprint("key-", try)
				if r := f.claim(n, c, user, key, 1); r.Outcome == dibs.Granted {
					p.told(f, user, key, &r)
				} else if _, had := p.at[user+" "+key]; had {
					t.Errorf("%s repeats %s and is told %v", user, key, r.Outcome)
				}
			}
		}
	}
	moved := map[uint8]bool{}
	for _, at := range p.at {
		moved[at.Shard] = true
	}
	if len(moved) < 4 {
		t.Errorf("new users were served by %d shards alone", len(moved))
	}
	f.whole(c, 2*users, 0)
}

// TestMoreShardsForOne gives a campaign of one shard more, and a red packet: users of
// before stay where they are and have their limit, new ones are told that all is sold
// only when it is. Fewer shards are refused.
func TestMoreShardsForOne(t *testing.T) {
	f := newFleet(t, 2)
	c := f.publish("sale", 1, 40, 2)
	first := f.claim(f.nodes[0], c, "ann", "one", 1)
	c = f.more(f.nodes[0], "sale", 8)
	for i := range 200 {
		if user := fmt.Sprintf("user-%d", i); c.ShardOf(user).Shard != 0 {
			if r := f.claim(f.nodes[i%2], c, user, "key", 1); r.Outcome != dibs.Granted && r.Outcome != dibs.SoldOut {
				t.Errorf("%s is told %v", user, r.Outcome)
			}
		}
	}
	for _, n := range f.nodes {
		again := f.claim(n, c, "ann", "one", 1)
		if !again.Replayed || again.Claim.Position != first.Claim.Position {
			t.Errorf("the repeat of ann is %+v", again)
		}
		if r := f.claim(n, c, "late", "", 1); r.Outcome != dibs.SoldOut {
			t.Errorf("a user after the last unit is told %v", r.Outcome)
		}
	}
	two := 2
	if _, err := f.nodes[0].Campaigns.Patch(t.Context(), "sale", dibs.CampaignPatch{Shards: &two}); err == nil {
		t.Error("a campaign has fewer shards than before")
	}
	f.whole(c, 40, 0)

	rain := f.packet("rain", 2, 5_000, 120)
	g := f.grab(rain, []string{"ann", "bob", "eve"}, 1, func(int) {})
	rain = f.more(f.nodes[1], "rain", 5)
	users := make([]string, 90)
	for i := range users {
		users[i] = fmt.Sprintf("user-%d", i)
	}
	more := f.grab(rain, users, 16, func(int) {})
	for user := range g.of {
		if r := f.claim(f.nodes[0], rain, user, "another", 1); r.Outcome != dibs.LimitReached {
			t.Errorf("%s, who has a share, is told %v", user, r.Outcome)
		}
	}
	for user, amount := range g.of {
		more.of[user] = amount
	}
	more.sum += g.sum
	if len(more.of) != 93 {
		t.Errorf("%d users have a share", len(more.of))
	}
	f.home(rain, more, 0)
}

// TestAChangeThatOnlyTheLedgerKnows gives a sale more shards as a node does that dies before
// it has told anyone: the others take it up, tell the shards, and sell what is left.
func TestAChangeThatOnlyTheLedgerKnows(t *testing.T) {
	f := newFleet(t, 2)
	c := f.publish("sale", 2, 30, 1)
	for i := range 10 {
		f.claim(f.nodes[i%2], c, fmt.Sprintf("user-%d", i), "key", 1)
	}
	now, err := f.nodes[0].Campaigns.Now(t.Context(), "sale")
	if err != nil {
		t.Fatal(err)
	}
	more := *now
	more.EarlierShards, more.Shards = []int{2}, 6
	if err := f.nodes[0].Ledger.UpdateCampaign(t.Context(), &more); err != nil {
		t.Fatal(err)
	}
	granted := 0
	claim := func(from, to int) {
		for i := from; i < to; i++ {
			if r := f.claim(f.nodes[i%2], &more, fmt.Sprintf("user-%d", i), "key", 1); r.Outcome == dibs.Granted {
				granted++
			} else if r.Outcome != dibs.SoldOut {
				t.Errorf("user %d is told %v", i, r.Outcome)
			}
		}
	}
	claim(0, 20)
	for _, n := range f.nodes {
		f.goesBy(n, "sale", 6)
	}
	claim(20, 40)
	if granted != 30 {
		t.Errorf("%d of 30 are granted", granted)
	}
	f.whole(&more, 30, 0)
}

// TestALedgerOfBeforeMoreShards restores the ledger of before a sale had more shards. No
// claim is decided until it has been given the same shards again; then every user has the
// claim that they had, and a repair leaves nothing in quarantine.
func TestALedgerOfBeforeMoreShards(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f := &fleet{T: t}
	open := func() {
		n, err := node.Open(t.Context(), node.Config{Dir: dir, Migrate: true, Engine: redis.URL()})
		must(err)
		f.nodes = []*node.Node{n}
	}
	closed := func() { must(f.nodes[0].Close(context.WithoutCancel(t.Context()))) }
	open()
	c := f.publish("sale", 2, 100, 1)
	for i := range 10 {
		f.claim(f.nodes[0], c, fmt.Sprint("user-", i), "key", 1)
	}
	closed()
	must(os.CopyFS(backup, os.DirFS(dir)))
	open()
	c = f.more(f.nodes[0], "sale", 5)
	p := &promised{at: map[string]dibs.Position{}}
	all := func() {
		for i := range 50 {
			user := fmt.Sprint("user-", i)
			r := f.claim(f.nodes[0], c, user, "key", 1)
			p.told(f, user, "key", &r)
		}
	}
	all()
	closed()
	must(os.RemoveAll(dir))
	must(os.CopyFS(dir, os.DirFS(backup)))
	open()
	defer closed()
	for i := range 50 {
		r, err := f.nodes[0].Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "sale", UserID: fmt.Sprint("user-", i), Key: "key", Quantity: 1})
		if err == nil {
			t.Errorf("a claim by the old ledger is told %v", r.Outcome)
		}
	}
	c = f.more(f.nodes[0], "sale", 5)
	all()
	for over := time.Now().Add(time.Minute); ; {
		report, err := f.nodes[0].Audit.Repair(t.Context(), audit.RepairRequest{Campaigns: []string{"sale"}})
		if err == nil && report.OK {
			break
		}
		if time.Now().After(over) {
			t.Fatalf("it cannot be repaired: %+v, %v", report, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	f.whole(c, 50, 50)
}
