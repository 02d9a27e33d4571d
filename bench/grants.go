package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs/node"
)

// median sorts the values and returns the middle one; of an even number, the upper of the two in
// the middle. It needs at least one value.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// medians returns the median of each figure that of takes from a round; zeros without a round.
func medians[T any](rounds []T, of func(*T) []float64) []float64 {
	out := make([]float64, len(of(new(T))))
	for n := range out {
		values := make([]float64, len(rounds))
		for i := range rounds {
			values[i] = of(&rounds[i])[n]
		}
		if len(values) > 0 {
			out[n] = median(values)
		}
	}
	return out
}

// printRow prints a row of a table: what it is about, then its figures.
func printRow(form string, figures []float64, about ...any) {
	for _, f := range figures {
		about = append(about, f)
	}
	fmt.Printf(form, about...)
}

// grants measures durable grants: each caller waits until its grant is in the journal, synced. No
// yardstick stands beside it: the part compares grants with settling, which must keep up in the
// long run. So each round prints how many entries were settled while claims came, and how fast the
// rest was settled alone. The stock never runs out and no user comes twice, so every answer is a
// grant. The rate depends on the disk's sync and on callers: more callers share one sync.
func grants(ctx context.Context, o *options) error {
	// One node for all rounds: its ledger grows, as that of a node does that sells for hours.
	n, err := openNode(ctx, node.Config{})
	if err != nil {
		return err
	}
	defer n.discard()
	if err := n.campaign(ctx, "c", 1_000_000_000, 1); err != nil {
		return err
	}
	var rates, behind, alone []float64
	// Each round begins with other users: a user who has a grant would be refused by the limit.
	first := 0
	for range o.rounds {
		before := n.Service.Observe().Settled
		took, err := n.rush(ctx, "c", o.callers, first, o.claims)
		if err != nil {
			return err
		}
		first += 1 << 24
		// The rate ends with the last answer; what is left to settle is measured by itself below.
		rates = append(rates, float64(o.claims)/took.Seconds())
		behind = append(behind, float64(n.Service.Observe().Settled-before)/took.Seconds())
		rate, err := n.settleRate(ctx)
		if err != nil {
			return err
		}
		alone = append(alone, rate)
	}
	fmt.Printf("| durable grants/s, %d callers | settled/s meanwhile | settled/s alone |\n|---|---|---|\n", o.callers)
	fmt.Printf("| %.0f | %.0f | %.0f |\n", median(rates), median(behind), median(alone))
	return nil
}

// settleRate waits until all is settled, and returns the entries settled a second meanwhile. It
// looks every 10 ms: the rate is too low when so little was left that it took only some of those.
func (n *benchNode) settleRate(ctx context.Context) (float64, error) {
	before, started := n.Service.Observe().Settled, time.Now()
	var m node.Metrics
	err := until(ctx, 10*time.Millisecond, func() (bool, error) {
		m = n.Service.Observe()
		waiting := int64(0)
		for _, c := range m.Campaigns {
			waiting += c.Backlog
		}
		return waiting == 0, nil
	})
	return float64(m.Settled-before) / time.Since(started).Seconds(), err
}

// refusals measures the refusals of a sold-out campaign, which is what nearly every user of a rush
// receives. A request without a key needs one look at a counter; a request with a key has to be
// looked up among the holders first, since it may repeat a claim that was granted. All users ask
// for the first time and hold nothing.
func refusals(ctx context.Context, o *options) error {
	n, err := openNode(ctx, node.Config{})
	if err != nil {
		return err
	}
	defer n.discard()
	if err := n.soldOut(ctx, "c", o.callers, 10_000); err != nil {
		return err
	}
	// A refusal takes some hundred nanoseconds: so many take seconds, beside which the start of the
	// callers and one collection of garbage do not show.
	return refusalRates(ctx, o, n, "refused/s, sold out", 20*o.claims)
}

// refusalRates prints how many claims a node that is sold out refuses in a second.
func refusalRates(ctx context.Context, o *options, n *benchNode, what string, claims int) error {
	fmt.Printf("| %s | without a key | with a key |\n|---|---|---|\n", what)
	var plain, keyed []float64
	for range o.rounds {
		took, err := n.refuse(ctx, "c", "", claims)
		if err != nil {
			return err
		}
		plain = append(plain, float64(claims)/took.Seconds())
		if took, err = n.refuse(ctx, "c", "press-1", claims); err != nil {
			return err
		}
		keyed = append(keyed, float64(claims)/took.Seconds())
	}
	fmt.Printf("| %d callers | %.0f | %.0f |\n", refusers, median(plain), median(keyed))
	return nil
}

// flat asks whether the last unit costs more than the first: it compares the CPU of a grant in a
// campaign of ten thousand holders with that of a grant in one of o.holders. Settling is included,
// since the ledger's indexes grow too. Each size has a node and thus a ledger of its own. The
// heap is the process's: collecting it costs both sizes alike. MaxBacklog is out of reach, since
// filling the large campaign would otherwise be refused as overloaded and end the part.
func flat(ctx context.Context, o *options) error {
	few, err := openNode(ctx, node.Config{Service: node.ServiceConfig{MaxBacklog: 1 << 40}})
	if err != nil {
		return err
	}
	defer few.discard()
	many, err := openNode(ctx, node.Config{Service: node.ServiceConfig{MaxBacklog: 1 << 40}})
	if err != nil {
		return err
	}
	defer many.discard()
	if err := many.campaign(ctx, "many", 1_000_000_000, 1); err != nil {
		return err
	}
	if _, err := many.rush(ctx, "many", o.callers, 0, o.holders); err != nil {
		return err
	}
	// Else the first round would settle, and count, what the filling left unsettled.
	if _, err := many.settleRate(ctx); err != nil {
		return err
	}
	claims := o.claims / 5
	var small, large []float64
	// At least five rounds: a ratio near one needs a steadier median than a rate.
	for i := range max(o.rounds, 5) {
		// A new campaign for each round, or the small one would grow from round to round. The large
		// one grows by a few percent.
		id := fmt.Sprintf("few-%d", i)
		if err := few.campaign(ctx, id, 1_000_000_000, 1); err != nil {
			return err
		}
		if _, err := few.rush(ctx, id, o.callers, 0, 10_000); err != nil {
			return err
		}
		for _, m := range []struct {
			n    *benchNode
			id   string
			cost *[]float64
		}{{few, id, &small}, {many, "many", &large}} {
			if _, err := m.n.settleRate(ctx); err != nil {
				return err
			}
			// All threads of the process: the callers' part is the same for both sizes.
			cpu := cpuTime()
			if _, err := m.n.rush(ctx, m.id, o.callers, (i+1)<<24, claims); err != nil {
				return err
			}
			if _, err := m.n.settleRate(ctx); err != nil {
				return err
			}
			*m.cost = append(*m.cost, (cpuTime()-cpu).Seconds()/float64(claims)*1e6)
		}
	}
	a, b := median(small), median(large)
	fmt.Printf("| CPU per grant, settling included | 10,000 holders | %d holders | ratio |\n|---|---|---|---|\n", o.holders)
	fmt.Printf("| µs | %.2f | %.2f | %.2f |\n", a, b, b/a)
	return nil
}
