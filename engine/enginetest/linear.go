package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dibs-dev/dibs"
)

var linearChecks = []Check{
	{"linear/short histories of many clients are linearizable", checkLinear},
}

// Sizes of a history. The search grows with both.
const (
	linearClients = 8
	linearOps     = 24
	linearStock   = 6
	linearLimit   = 3
	// linearTimeout bounds the search of one history.
	linearTimeout = 20 * time.Second
)

// linearInput is one operation of a history; kind is claim, release, withdraw or
// stats. user is also the ref of a withdrawal, which is never used twice. target is
// the seq of the claim to release: all claims of a history are of one epoch.
type linearInput struct {
	kind     string
	user     string
	key      uint64
	quantity int64
	target   uint32
}

// linearOutput is its answer. An unknown one was cancelled: it may have had its
// effect, at any time since, or none. decision belongs to a claim, refused to a
// withdrawal, stats to a count.
type linearOutput struct {
	unknown  bool
	decision dibs.Decision
	refused  bool
	stats    dibs.ShardStats
}

// history records the operations of one campaign. clock counts calls and answers, so
// that an operation that ended before another began has the smaller numbers. mu guards
// ops and granted, the claims that can be released.
type history struct {
	o     *offer
	clock atomic.Int64

	mu      sync.Mutex
	ops     []porcupine.Operation
	granted []dibs.Position
}

// checkLinear lets 8 clients call one shard at the same time, and searches for an
// order of the calls, one after the other, that explains every answer. There is such
// an order for a correct engine, whatever it batches; a stale read, a lost update or a
// check that is apart from its write has none. The seed gives the operations, not how
// the goroutines meet, so a failure may need several runs to come again.
func checkLinear(r *rig) {
	seed := uint64(time.Now().UnixNano())
	r.tb.Logf("histories from seed %d", seed)
	total, unknown, undecided := 0, 0, 0
	histories := envInt(r, "ENGINETEST_HISTORIES", r.fewer(100))
	for n := range histories {
		// Each history has a small campaign of its own: search time grows with its length.
		// A shard's history stands alone: nothing that is decided on another one explains it.
		var shards []*history
		for _, o := range r.offer(linearStock, limit(linearLimit)).shards() {
			shards = append(shards, &history{o: o})
		}
		r.together(linearClients, func(i int) {
			rng := rand.New(rand.NewPCG(seed+uint64(n), uint64(i)))
			for range linearOps {
				shards[rng.IntN(len(shards))].step(i, rng)
			}
		})
		for _, h := range shards {
			total += len(h.ops)
			for _, x := range h.ops {
				if x.Output.(linearOutput).unknown {
					unknown++
				}
			}
			switch porcupine.CheckOperationsTimeout(linearModel, h.ops, linearTimeout) {
			case porcupine.Ok:
			case porcupine.Unknown:
				// With many unknown outcomes the search may take too long.
				undecided++
			default:
				r.fatalf("history %d is not linearizable:\n%s", n, h.describe())
			}
		}
	}
	r.that(undecided*2 < histories, "%d of %d histories could not be decided in %v", undecided, histories, linearTimeout)
	r.tb.Logf("%d operations, of %d the outcome is unknown, %d histories undecided", total, unknown, undecided)
}

// describe lists a history in the order of the calls.
func (h *history) describe() string {
	slices.SortFunc(h.ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var s string
	for _, x := range h.ops {
		s += fmt.Sprintf("client %d [%d, %d] %s\n", x.ClientId, x.Call, x.Return, linearModel.DescribeOperation(x.Input, x.Output))
	}
	return s
}

// step draws, calls and records one operation. One call in 40 is cancelled while it
// runs. An error of the effect none must have changed nothing, so it is left out;
// after any other error the operation may take effect at any later time.
func (h *history) step(client int, rng *rand.Rand) {
	in := h.draw(client, rng)
	ctx, cancel := context.WithCancel(h.o.ctx)
	defer cancel()
	if rng.IntN(40) == 0 {
		go cancel()
	}
	call := h.clock.Add(1)
	out, err := h.call(ctx, in)
	end := h.clock.Add(1)
	if err != nil {
		h.o.is(err, "an operation of a history", context.Canceled, dibs.ErrUnavailable, dibs.ErrOverloaded)
		if effectOf(err) == dibs.EffectNone {
			// Nothing happened: nothing to order.
			return
		}
		out.unknown, end = true, math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
	if err == nil && in.kind == "claim" && out.decision.Outcome == dibs.Granted {
		h.granted = append(h.granted, out.decision.Grant.Position)
	}
}

// draw chooses an operation: half of them claims, by few users and keys, so that
// repeats, reused keys and refusals by the limit come up in every history.
func (h *history) draw(client int, rng *rand.Rand) linearInput {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n := rng.IntN(20); {
	case n < 5 && len(h.granted) > 0:
		return linearInput{kind: "release", target: h.granted[rng.IntN(len(h.granted))].Seq}
	case n == 5:
		return linearInput{kind: "withdraw", user: fmt.Sprintf("%d-%d", client, rng.Uint64()), quantity: 1}
	case n < 10:
		return linearInput{kind: "stats"}
	}
	return linearInput{kind: "claim", user: userName(rng.IntN(4)), key: rng.Uint64N(10), quantity: 1 + rng.Int64N(2)}
}

// call makes the operation's call. A withdrawal beyond what remains is an answer, not
// a failure. Releases go to the engine without the ledger, since nothing is settled
// here.
func (h *history) call(ctx context.Context, in linearInput) (out linearOutput, err error) {
	o := h.o
	switch in.kind {
	case "claim":
		out.decision, err = o.eng.Claim(ctx, o.request(in.user, in.key, in.quantity))
	case "release":
		p := dibs.Position{ShardID: o.shard, Cursor: dibs.Cursor{Epoch: o.ledger.epoch, Seq: in.target}}
		err = o.eng.Release(ctx, dibs.Release{Claim: p, Epoch: o.ledger.epoch})
	case "withdraw":
		err = o.eng.Adjust(ctx, o.withdrawal(in.user, in.quantity))
		if errors.Is(err, dibs.ErrInvalidState) {
			out.refused, err = true, nil
		}
	case "stats":
		out.stats, err = o.eng.Stats(ctx, o.shard)
	}
	return out, err
}
