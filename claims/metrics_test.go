package claims_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// idleTracer is a tracer that keeps nothing.
type idleTracer struct{ begun int }

func (tr *idleTracer) Begin(ctx context.Context, _ string, _ ...slog.Attr) (context.Context, func(error)) {
	tr.begun++
	return ctx, func(error) {}
}

func (*idleTracer) Part(ctx context.Context, _ string, _ ...slog.Attr) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func sum(t dibs.Tally) (n int64) {
	for _, c := range t.Counts {
		n += c
	}
	return n
}

// TestObserve compares what the node counts with what was done, also after the
// campaign has left.
func TestObserve(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{TidyEvery: 10 * time.Millisecond})
	r.Publish(r.Sale("c", 3))
	r.Sell("c", 3)
	r.Wants(dibs.Granted, "c", "u0", "k0")
	for i := range 5 {
		r.Wants(dibs.SoldOut, "c", fmt.Sprint("late", i), "")
	}
	r.Wants(dibs.NotFound, "nothing", "u", "")
	if _, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "c"}); err == nil {
		t.Error("a claim of nobody")
	}
	check := func(live int64) {
		t.Helper()
		m := r.Node.Observe()
		if m.Granted != 3 || m.Replayed != 1 || m.Refused[dibs.SoldOut] != 5 || m.Refused[dibs.NotFound] != 1 || m.Refused[dibs.InvalidRequest] != 1 {
			t.Errorf("granted %d, replayed %d, refused %v", m.Granted, m.Replayed, m.Refused)
		}
		if m.Live != live || int64(len(m.Campaigns)) != live || m.Halted != 0 {
			t.Errorf("%d live, %d told of, %d halted", m.Live, len(m.Campaigns), m.Halted)
		}
		// The first entry of a journal is its opening.
		if m.EngineStats.Batches.Sum != 4 || sum(m.EngineStats.Batches) != sum(m.EngineStats.Queued) || m.EngineStats.Lost != 0 {
			t.Errorf("batches %+v, queued %+v, lost %d", m.EngineStats.Batches, m.EngineStats.Queued, m.EngineStats.Lost)
		}
	}
	check(1)
	// Hours later it has left the engine.
	r.Pass(3 * time.Hour)
	for deadline := time.Now().Add(time.Minute); r.Node.Observe().Live > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the campaign stays in the engine")
		}
	}
	check(0)
	r.Wants(dibs.Granted, "c", "u0", "k0")
	r.Wants(dibs.Ended, "c", "u9", "")
	if m := r.Node.Observe(); m.Replayed != 2 || m.Refused[dibs.Ended] != 1 || m.Refused[dibs.SoldOut] != 5 {
		t.Errorf("replayed %d, refused %v", m.Replayed, m.Refused)
	}
}

// TestTracingCostsClaimsNothing counts the allocations of claims without a
// tracer, and with one that is not to see claims.
func TestTracingCostsClaimsNothing(t *testing.T) {
	allocs := func(tune node.ServiceConfig) float64 {
		r := testnode.New(t, tune)
		r.Publish(r.Sale("c", 1))
		r.Sell("c", 1)
		req := dibs.ClaimRequest{CampaignID: "c", UserID: "u1"}
		// Other work of the node is counted, too: the least of some rounds is the claims'.
		least := math.Inf(1)
		for range 5 {
			least = min(least, testing.AllocsPerRun(1000, func() {
				if res, err := r.Node.Claims.Claim(t.Context(), req); err != nil || res.Outcome != dibs.SoldOut {
					t.Errorf("%v, %v", res.Outcome, err)
				}
			}))
		}
		return least
	}
	tracer := &idleTracer{}
	if off, on := allocs(node.ServiceConfig{}), allocs(node.ServiceConfig{Tracer: tracer}); on > off || off > 1 {
		t.Errorf("a refusal allocates %v times without a tracer, %v with one", off, on)
	}
}
