package strategies

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/node"
)

// Dibs is dibs at work: one step decides for all claims that come together, the journal has a yes
// before it is said, and the ledger follows in batches. Nothing in it changes while callers
// share it.
type Dibs struct {
	node *node.Node
	id   string
}

// openDibs starts a node. Redis decides at a level; without one, memory does. MaxBacklog is out of
// reach, so that no claim is refused because settling is behind.
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
		spec := dibs.CampaignSpec{
			ID: a.id, Kind: dibs.Sale, Title: "Lab", StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(24 * time.Hour),
			Stock: dibs.StockSpec{Units: &w.Stock}, Limit: &limit,
		}
		if w.Packet {
			// As in the usual way: shares of one sum, made beforehand. The platform pays.
			spec.Kind = dibs.RedPacket
			spec.Stock = dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{
				Total: dibs.Money{Amount: 100 * w.Stock, Currency: "CNY"}, Count: w.Stock, Split: dibs.DoubleMean, Min: 1,
			}}
		}
		_, err = nd.Service.Campaigns.Create(ctx, spec)
		if err == nil {
			err = publish(ctx, nd.Service, a.id)
		}
		if err != nil {
			return nil, errors.Join(err, nd.Close(ctx))
		}
		return a, nil
	}
}

// publishWithin is how long publishing is tried.
const publishWithin = 10 * time.Second

// publish publishes a campaign, as a caller of dibs does: again while the engine is unavailable. A
// replica confirms late on a busy machine.
func publish(ctx context.Context, s *node.Service, id string) error {
	for until := time.Now().Add(publishWithin); ; {
		_, err := s.Campaigns.Publish(ctx, id)
		if !errors.Is(err, dibs.ErrUnavailable) || time.Now().After(until) || !wait.Sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// Claim implements Attempt.
func (a *Dibs) Claim(ctx context.Context, user string) (Outcome, error) {
	r, err := a.node.Service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: a.id, UserID: user})
	switch {
	case err != nil:
		return Busy, err
	case r.Outcome == dibs.Granted:
		return Granted, nil
	case r.Outcome == dibs.LimitReached, r.Outcome == dibs.TooManyClaims:
		return Again, nil
	}
	return SoldOut, nil
}

// Finish implements Attempt: it settles all that was granted. The count of entries that were settled
// says nothing of that: opening a campaign is an entry too. The node goes on, for Orders; Close ends
// it.
func (a *Dibs) Finish(ctx context.Context) error {
	c, err := a.node.Service.Live.Registry.Get(ctx, a.id)
	if err != nil {
		return err
	}
	return a.node.Service.Live.Settler.SettleAll(ctx, c)
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
