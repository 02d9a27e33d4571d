package moving_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/dibs-dev/dibs"
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

// wish is a claim of a history, which no other one repeats.
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
		return fmt.Sprintf("user %d claims %d: %v", w.user, w.quantity, output)
	},
}

// TestLinearizableOverShards has users claim through two nodes until all is sold, and
// searches for an order of the claims, one after the other, that explains every answer. A
// node that says sold out while another shard has enough, or a unit is on its way, has
// none.
func TestLinearizableOverShards(t *testing.T) {
	f := newFleet(t, 2)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	soldOut := 0
	for n := range 20 {
		c := f.publish("sale-"+strconv.Itoa(n), historyShards, historyUnits, historyLimit)
		ops := f.history(c, rand.New(rand.NewPCG(seed, uint64(n))))
		for i := range ops {
			if ops[i].Output == dibs.SoldOut {
				soldOut++
			}
		}
		if r := porcupine.CheckOperationsTimeout(oneCampaign, ops, 20*time.Second); r != porcupine.Ok {
			for i := range ops {
				t.Logf("%d-%d %s", ops[i].Call, ops[i].Return, oneCampaign.DescribeOperation(ops[i].Input, ops[i].Output))
			}
			t.Fatalf("history %d has no order: %v", n, r)
		}
	}
	if soldOut == 0 {
		t.Error("no claim found the campaign sold out: these histories say little")
	}
}

// history has all users claim at once, and records what they were told. A claim that is to
// be tried again is one operation with its repeats, which have its key.
func (f *fleet) history(c *dibs.Campaign, d *rand.Rand) []porcupine.Operation {
	f.Helper()
	var clock atomic.Int64
	var mu sync.Mutex
	var ops []porcupine.Operation
	var all sync.WaitGroup
	for user := range historyUsers {
		quantities := make([]int64, historyClaims)
		for i := range quantities {
			quantities[i] = 1 + d.Int64N(2)
		}
		all.Go(func() {
			for i, quantity := range quantities {
				op := porcupine.Operation{ClientId: user, Input: wish{user, quantity}, Call: clock.Add(1)}
				r := f.claim(f.nodes[(user+i)%len(f.nodes)], c, fmt.Sprint("user-", user), strconv.Itoa(i), quantity)
				op.Output, op.Return = r.Outcome, clock.Add(1)
				mu.Lock()
				ops = append(ops, op)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return ops
}
