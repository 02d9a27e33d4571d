package moving_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// Sizes of a history: a few units more than its users want in one shard, and fewer than
// they want in all.
const (
	historyShards = 3
	historyUnits  = 9
	historyUsers  = 6
	historyClaims = 4
	historyLimit  = 3
)

// wish is a claim of a history, which no other one repeats. Of a claim that is cancelled the
// quantity is negative.
type wish struct {
	user     int
	quantity int64
}

// remaining is a campaign between two claims: what is left, and what each user holds.
type remaining struct {
	left int64
	held [historyUsers]int64
}

// oneCampaign says which answers a campaign may give, however many shards it has: each
// claim as if all stock lay in one place.
var oneCampaign = porcupine.Model{
	Init: func() any { return remaining{left: historyUnits} },
	Step: func(state, input, output any) (bool, any) {
		s, w := state.(remaining), input.(wish)
		switch output.(dibs.Reason) {
		case dibs.Granted:
			s.left -= w.quantity
			s.held[w.user] += w.quantity
			return s.left >= 0 && s.held[w.user] <= historyLimit, s
		case dibs.SoldOut:
			return s.left < w.quantity, s
		case dibs.LimitReached:
			return s.held[w.user]+w.quantity > historyLimit, s
		}
		return false, s
	},
	DescribeOperation: func(input, output any) string {
		w := input.(wish)
		if w.quantity < 0 {
			return fmt.Sprintf("user %d gives %d back", w.user, -w.quantity)
		}
		return fmt.Sprintf("user %d claims %d: %v", w.user, w.quantity, output)
	},
}

// rounds is how many histories there are, or those that SOAK says.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SOAK")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SOAK must be a number from 1, not %q", text)
	}
	return n
}

// TestLinearizableOverShards has users claim through two nodes until all is sold, and some of
// them cancel a claim meanwhile. It searches for an order of the claims and of the returns, one
// after the other, that explains every answer. A node that says sold out while another shard
// has enough, or a unit is on its way, has none; nor has one that sells a unit twice. In the
// end the units that came back are sold, each of them once.
func TestLinearizableOverShards(t *testing.T) {
	f := newFleet(t, 2)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	count := map[dibs.Reason]int{}
	returns := 0
	for n := range rounds(t) {
		spec := sale("sale-"+strconv.Itoa(n), historyShards, historyUnits, historyLimit)
		spec.Price, spec.PayWithin = &dibs.Money{Amount: 100, Currency: "CNY"}, new(dibs.Duration(time.Hour))
		c := f.publishSpec(spec)
		ops := f.history(c, rand.New(rand.NewPCG(seed, uint64(n))))
		held := int64(0)
		for i := range ops {
			count[ops[i].Output.(dibs.Reason)]++
			if ops[i].Output != dibs.Granted {
				continue
			}
			quantity := ops[i].Input.(wish).quantity
			if held += quantity; quantity < 0 {
				returns++
			}
		}
		if r := porcupine.CheckOperationsTimeout(oneCampaign, ops, 20*time.Second); r != porcupine.Ok {
			for i := range ops {
				t.Logf("%d-%d %s", ops[i].Call, ops[i].Return, oneCampaign.DescribeOperation(ops[i].Input, ops[i].Output))
			}
			t.Fatalf("history %d has no order: %v", n, r)
		}
		for i := range historyUnits - held {
			f.soon(f.nodes[0], c, fmt.Sprint("last-", i))
		}
		f.whole(c, historyUnits, 0)
		if _, err := f.nodes[0].Campaigns.End(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d claims cancelled, answers %v", returns, count)
	if count[dibs.SoldOut] == 0 || returns == 0 {
		t.Error("no claim found the campaign sold out, or none was cancelled: these histories say little")
	}
}

// history has all users claim at once, and records what they were told. A claim that is to
// be tried again is one operation with its repeats, which have its key. Every other user
// cancels the first claim. What they give back may arrive at any time until the end of the
// history: the outbox sends it.
func (f *fleet) history(c *dibs.Campaign, d *rand.Rand) []porcupine.Operation {
	f.Helper()
	var clock atomic.Int64
	var mu sync.Mutex
	var ops, returns []porcupine.Operation
	var all sync.WaitGroup
	for user := range historyUsers {
		quantities := make([]int64, historyClaims)
		for i := range quantities {
			quantities[i] = 1 + d.Int64N(2)
		}
		all.Go(func() {
			for i, quantity := range quantities {
				n := f.nodes[(user+i)%len(f.nodes)]
				op := porcupine.Operation{ClientId: user, Input: wish{user, quantity}, Call: clock.Add(1)}
				r := f.claim(n, c, fmt.Sprint("user-", user), strconv.Itoa(i), quantity)
				op.Output, op.Return = r.Outcome, clock.Add(1)
				mu.Lock()
				ops = append(ops, op)
				mu.Unlock()
				if i > 0 || user%2 > 0 || r.Outcome != dibs.Granted {
					continue
				}
				back := porcupine.Operation{ClientId: historyUsers + user, Input: wish{user, -quantity}, Output: dibs.Granted, Call: clock.Add(1)}
				f.cancel(n, r.Claim.ID)
				mu.Lock()
				returns = append(returns, back)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i := range returns {
		returns[i].Return = clock.Add(1)
	}
	return append(ops, returns...)
}

// cancel gives a claim back, again while the answer is to come back.
func (f *fleet) cancel(n *node.Node, id string) {
	f.Helper()
	for over := time.Now().Add(time.Minute); ; {
		_, _, err := n.Orders.Cancel(f.Context(), id, "", "back")
		switch {
		case err == nil:
			return
		case !errors.Is(err, dibs.ErrOverloaded) && !errors.Is(err, dibs.ErrUnavailable), time.Now().After(over):
			f.Errorf("a cancel: %v", err)
			return
		}
	}
}
