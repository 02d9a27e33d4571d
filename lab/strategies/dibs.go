package strategies

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// Dibs is dibs at work: one step decides for all who come together, the journal
// has a yes before it is said, and the ledger follows in batches.
type Dibs struct {
	node *node.Node
	id   string
	// granted counts the yeses, to know when all are in the ledger.
	granted atomic.Int64
}

// openDibs starts a node. Redis decides at a level; without one, memory does.
func openDibs(level string) func(context.Context, *World) (Attempt, error) {
	return func(ctx context.Context, w *World) (Attempt, error) {
		cfg := node.Config{
			Engine: node.Memory, Dir: w.Dir, Migrate: true, Durability: dibs.LevelDurable,
			Service: node.ServiceConfig{MaxBacklog: 1 << 40},
		}
		if level != "" {
			cfg.Engine, cfg.Ledger, cfg.Durability = w.RedisURL, w.LedgerURL, level
		}
		nd, err := node.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		a := &Dibs{node: nd, id: "lab"}
		limit := int64(1)
		_, err = nd.Service.Campaigns.Create(ctx, dibs.CampaignSpec{
			ID: a.id, Kind: dibs.Sale, Title: "Lab", StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(24 * time.Hour),
			Stock: dibs.StockSpec{Units: &w.Stock}, Limit: &limit,
		})
		if err == nil {
			_, err = nd.Service.Campaigns.Publish(ctx, a.id)
		}
		if err != nil {
			return nil, errors.Join(err, nd.Close(ctx))
		}
		return a, nil
	}
}

// Claim implements Attempt.
func (a *Dibs) Claim(ctx context.Context, user string) (Outcome, error) {
	r, err := a.node.Service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: a.id, UserID: user})
	switch {
	case err != nil:
		return Busy, err
	case r.Outcome == dibs.Granted:
		a.granted.Add(1)
		return Granted, nil
	case r.Outcome == dibs.LimitReached, r.Outcome == dibs.TooManyClaims:
		return Again, nil
	}
	return SoldOut, nil
}

// settled is how often Finish looks whether all is.
const settled = 2 * time.Millisecond

// Finish implements Attempt: it waits until all is in the ledger. The node goes
// on, for Orders; Close ends it.
func (a *Dibs) Finish(ctx context.Context) error {
	for a.node.Service.Observe().Settled < a.granted.Load() {
		select {
		case <-time.After(settled):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Orders counts the claims of each user in the ledger.
func (a *Dibs) Orders(ctx context.Context) (map[string]int64, error) {
	c, err := a.node.Service.Live.Registry.Get(ctx, a.id)
	if err != nil {
		return nil, err
	}
	orders := map[string]int64{}
	page := dibs.Page{Limit: dibs.MaxPage}
	for {
		list, err := a.node.Ledger.ClaimList(ctx, dibs.ClaimFilter{Campaign: c.Number}, page)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			orders[list.Items[i].UserID]++
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return orders, nil
		}
	}
}

// Close ends the node.
func (a *Dibs) Close(ctx context.Context) error { return a.node.Close(ctx) }
