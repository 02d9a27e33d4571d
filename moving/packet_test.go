package moving_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/node"
)

// packet publishes a red packet of a sender, over several shards, and pays it in.
func (f *fleet) packet(id string, shards int, total, count int64) *dibs.Campaign {
	f.Helper()
	n, sum := f.nodes[0], dibs.Money{Amount: total, Currency: "CNY"}
	if _, _, err := n.Funds.Deposit(f.Context(), "host", funds.DepositSpec{Amount: sum, Ref: id}); err != nil {
		f.Fatal(err)
	}
	c, err := n.Campaigns.Create(f.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.RedPacket, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour), SenderID: "host",
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: sum, Count: count}}, Shards: &shards,
	})
	if err == nil {
		c, err = n.Campaigns.Publish(f.Context(), id)
	}
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// grabs are the shares that users were told they have.
type grabs struct {
	sync.Mutex
	of   map[string]int64
	ids  map[string]string
	none int
	sum  int64
}

// grab has users grab a share each, so many at a time, through all nodes, and calls
// after with the number of grants after each. A share that two users are told they
// have is an error.
func (f *fleet) grab(c *dibs.Campaign, users []string, together int, after func(granted int)) *grabs {
	f.Helper()
	g := &grabs{of: map[string]int64{}, ids: map[string]string{}}
	next := make(chan string)
	var all sync.WaitGroup
	for i := range together {
		all.Go(func() {
			for user := range next {
				r := f.claim(f.nodes[i%len(f.nodes)], c, user, "key", 1)
				g.Lock()
				switch r.Outcome {
				case dibs.Granted:
					share := r.Claim.Items[0]
					if other, twice := g.ids[share]; twice {
						f.Errorf("share %s is %s's and %s's", share, other, user)
					}
					g.ids[share], g.of[user] = user, r.Claim.Amount.Amount
					g.sum += r.Claim.Amount.Amount
				case dibs.SoldOut:
					g.none++
				default:
					f.Errorf("%s is told %v", user, r.Outcome)
				}
				granted := len(g.of)
				g.Unlock()
				after(granted)
			}
		})
	}
	for _, user := range users {
		next <- user
	}
	close(next)
	all.Wait()
	return g
}

// home ends a red packet and waits until its rest is with its sender. Each user then
// has what they were told, and the sender the rest of the total, to the fen, and what
// they had before.
func (f *fleet) home(c *dibs.Campaign, g *grabs, before int64) {
	f.Helper()
	n, total := f.nodes[0], c.Packet.Total.Amount
	if _, err := n.Campaigns.End(f.Context(), c.ID); err != nil {
		f.Fatal(err)
	}
	for over := time.Now().Add(2 * time.Minute); ; {
		st, err := n.Stats(f.Context(), c.ID)
		if err != nil {
			f.Fatal(err)
		}
		if st.Funds.ReturnedAt != nil {
			if st.Funds.Credited.Amount != g.sum || st.Funds.Returned.Amount != total-g.sum || st.Funds.Escrow.Amount != 0 {
				f.Errorf("shares of %d were given out of %d, and the funds are %+v", g.sum, total, st.Funds)
			}
			break
		}
		if time.Now().After(over) {
			f.Fatalf("the rest is not home within two minutes: %+v", st.Funds)
		}
		<-time.After(20 * time.Millisecond)
	}
	balance := func(n *node.Node, user string) (sum int64) {
		v, err := n.Funds.Balance(f.Context(), user)
		if err != nil {
			f.Fatal(err)
		}
		for _, b := range v.Balances {
			sum += b.Amount
		}
		return sum
	}
	for user, amount := range g.of {
		if got := balance(n, user); got != amount {
			f.Errorf("%s has %d, and was told %d", user, got, amount)
		}
	}
	if got := balance(n, "host"); got != before+total-g.sum {
		f.Errorf("the sender has %d, want %d of before and %d back", got, before, total-g.sum)
	}
	f.whole(c, int64(len(g.of)), 0)
}

// TestEveryShareIsGiven has users of one shard alone grab all shares of five, through
// two nodes: the shares of the others come to them, each once, and the last one too.
// A user who has one is told so, although all are gone.
func TestEveryShareIsGiven(t *testing.T) {
	f := newFleet(t, 2)
	const total, count = 54_321, 300
	c := f.packet("rain", 5, total, count)
	users := usersOf(c, 3, count+40)
	g := f.grab(c, users, 64, func(int) {})
	if len(g.of) != count || g.none != 40 || g.sum != total {
		t.Errorf("%d have a share, of %d together, and %d are told that all are gone; want %d, %d, 40", len(g.of), g.sum, g.none, count, total)
	}
	for user := range g.of {
		if r := f.claim(f.nodes[1], c, user, "another", 1); r.Outcome != dibs.LimitReached {
			t.Errorf("%s, who has a share, is told %v", user, r.Outcome)
		}
		break
	}
	f.home(c, g, 0)
}

// TestWhatIsLeftOfAllShards ends a red packet while its shards give shares to each
// other: what was granted is credited, and the rest of all shards goes back.
func TestWhatIsLeftOfAllShards(t *testing.T) {
	f := newFleet(t, 2)
	const total, count = 100_000, 2_000
	c := f.packet("rain", 4, total, count)
	g := f.grab(c, usersOf(c, 1, 900), 64, func(int) {})
	if len(g.of) != 900 {
		t.Errorf("%d of 900 have a share", len(g.of))
	}
	if f.nodes[0].Moving.Metrics().Transfers+f.nodes[1].Moving.Metrics().Transfers == 0 {
		t.Error("nothing was moved: the shard was never short")
	}
	f.home(c, g, 0)

	// Shards with the same rest each give it up.
	even := f.packet("untouched", 4, 8_000, 80)
	f.home(even, &grabs{of: map[string]int64{}}, total-g.sum)
}

// TestClusterRedPacket gives 3,000 shares over six shards of a Cluster to 6,000 users,
// while a master is killed and its replica takes over: every share is given once, and
// all of them sum to the total.
func TestClusterRedPacket(t *testing.T) {
	cluster := newCluster(t)
	f := newFleetOn(t, 2, cluster.URL(), dibs.LevelLedgered)
	const total, count = 987_654, 3_000
	c := f.packet("rain", 6, total, count)
	_, master, err := cluster.Owner(t.Context(), fmt.Sprintf("dibs:{%d:0}:meta", c.Number))
	if err != nil {
		t.Fatal(err)
	}
	users := make([]string, 2*count)
	for i := range users {
		users[i] = fmt.Sprintf("user-%d", i)
	}
	var kill sync.Once
	killed := false
	g := f.grab(c, users, 256, func(granted int) {
		if granted > count/5 {
			kill.Do(func() { killed = true; master.Kill() })
		}
	})
	if !killed || len(g.of) != count || g.none != count || g.sum != total {
		t.Errorf("%d have a share, of %d together, and %d are told that all are gone; want %d, %d, %d; a master was killed: %v",
			len(g.of), g.sum, g.none, count, total, count, killed)
	}
	f.home(c, g, 0)
}
