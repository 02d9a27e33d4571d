package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/node"
)

// median returns the middle of the values.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// grants measures durable grants while settling runs behind, then the rest of
// the settling alone.
func grants(ctx context.Context, o *options) error {
	n, err := openNode(ctx, node.ServiceConfig{})
	if err != nil {
		return err
	}
	defer n.discard()
	if err := n.campaign(ctx, "c", 1_000_000_000, 1); err != nil {
		return err
	}
	var rates, behind, alone []float64
	first := 0
	for range o.rounds {
		before := n.Service.Observe().Settled
		took, err := n.rush(ctx, "c", o.callers, first, o.claims, dibs.Granted)
		if err != nil {
			return err
		}
		first += 1 << 24
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

// settleRate waits until all is settled, and returns the rate of it.
func (n *benchNode) settleRate(ctx context.Context) (float64, error) {
	before, started := n.Service.Observe().Settled, time.Now()
	for {
		m := n.Service.Observe()
		waiting := int64(0)
		for _, c := range m.Campaigns {
			waiting += c.Backlog
		}
		if waiting == 0 {
			return float64(m.Settled-before) / time.Since(started).Seconds(), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// refusals measures the refusals of a sold-out campaign, of users who have
// nothing and of requests with a key, which have to be looked up.
func refusals(ctx context.Context, o *options) error {
	n, err := openNode(ctx, node.ServiceConfig{})
	if err != nil {
		return err
	}
	defer n.discard()
	if err := n.campaign(ctx, "c", 10_000, 1); err != nil {
		return err
	}
	if _, err := n.rush(ctx, "c", o.callers, 0, 10_000, dibs.Granted); err != nil {
		return err
	}
	const claims = 20_000_000
	fmt.Printf("| refused/s, sold out | without a key | with a key |\n|---|---|---|\n")
	var plain, keyed []float64
	for range o.rounds {
		took, err := n.refuse(ctx, "c", "", claims)
		if err != nil {
			return err
		}
		plain = append(plain, claims/took.Seconds())
		if took, err = n.refuse(ctx, "c", "press-1", claims); err != nil {
			return err
		}
		keyed = append(keyed, claims/took.Seconds())
	}
	fmt.Printf("| %d callers | %.0f | %.0f |\n", refusers, median(plain), median(keyed))
	return nil
}

// flat measures grants to a campaign with few holders and with many.
func flat(ctx context.Context, o *options) error {
	few, err := openNode(ctx, node.ServiceConfig{MaxBacklog: 1 << 40})
	if err != nil {
		return err
	}
	defer few.discard()
	many, err := openNode(ctx, node.ServiceConfig{MaxBacklog: 1 << 40})
	if err != nil {
		return err
	}
	defer many.discard()
	if err := many.campaign(ctx, "many", 1_000_000_000, 1); err != nil {
		return err
	}
	if _, err := many.rush(ctx, "many", o.callers, 0, o.holders, dibs.Granted); err != nil {
		return err
	}
	if _, err := many.settleRate(ctx); err != nil {
		return err
	}
	const claims = 200_000
	var small, large []float64
	for i := range max(o.rounds, 5) {
		id := fmt.Sprintf("few-%d", i)
		if err := few.campaign(ctx, id, 1_000_000_000, 1); err != nil {
			return err
		}
		if _, err := few.rush(ctx, id, o.callers, 0, 10_000, dibs.Granted); err != nil {
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
			cpu := cpuTime()
			if _, err := m.n.rush(ctx, m.id, o.callers, (i+1)<<24, claims, dibs.Granted); err != nil {
				return err
			}
			if _, err := m.n.settleRate(ctx); err != nil {
				return err
			}
			*m.cost = append(*m.cost, (cpuTime()-cpu).Seconds()/claims*1e6)
		}
	}
	a, b := median(small), median(large)
	fmt.Printf("| CPU per grant, settling included | 10,000 holders | %d holders | ratio |\n|---|---|---|---|\n", o.holders)
	fmt.Printf("| µs | %.2f | %.2f | %.2f |\n", a, b, b/a)
	return nil
}
