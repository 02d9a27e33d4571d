package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

// CampaignsHealth returns whether every published campaign is in the engine. A failure
// of a deployment that is away does not count: the node can do no more.
func (n *Node) CampaignsHealth(away map[int]error) error {
	if err := n.Loader.stranded(away); err != nil {
		return err
	}
	for id, cause := range n.Loader.halts.Range {
		if !awaits(cause.(error), away) {
			return &CampaignError{Campaign: id.(string), Err: cause.(error)}
		}
	}
	for t := range n.Registry.eachShard {
		// A campaign that is over is not loaded again, and no caller waits for it, unless
		// it cannot be settled.
		cause := t.reload.backoff.failing()
		if cause != nil && !awaits(cause, away) && (n.Registry.Sells(t.l.Def()) || errors.Is(cause, dibs.ErrGap)) {
			return of(t.l.Def(), cause)
		}
	}
	if stuck := n.Loader.stuckTail.Load(); stuck != nil && !awaits(*stuck, away) {
		return *stuck
	}
	return nil
}

// SettlingHealth returns why a shard could not be settled the last time, but for the
// deployments that are away.
func (n *Node) SettlingHealth(away map[int]error) error {
	for t := range n.Registry.eachShard {
		if _, err := t.progress.failure(); err != nil && !awaits(err, away) {
			return of(t.l.Def(), err)
		}
	}
	return nil
}

// Totals adds the ledger's sums of a campaign's shards up.
func (n *Node) Totals(ctx context.Context, c *dibs.Campaign) (ShardTotals, error) {
	var sum ShardTotals
	for i := range c.Shards {
		t, err := n.Registry.ledger.Totals(ctx, dibs.ShardID{Campaign: c.Number, Shard: uint8(i)})
		if errors.Is(err, dibs.ErrNotFound) {
			continue
		}
		if err != nil {
			return sum, dibs.AsUnavailable(err, dibs.EffectNone)
		}
		sum.Epoch = max(sum.Epoch, t.Epoch)
		sum.Stock += t.Stock
		sum.StockLeft += t.StockLeft
		sum.Pending += t.Pending
		sum.Confirmed += t.Confirmed
		sum.Released += t.Released
		sum.Refunded += t.Refunded
	}
	return sum, nil
}

// liveStats puts the engine's numbers over the ledger's, which follow behind. Of a shard
// whose deployment is away it counts what the ledger has.
func (n *Node) liveStats(ctx context.Context, l *Campaign, c *dibs.Campaign, v *api.StatsView) error {
	settled, stock := v.Granted, v.Stock
	v.Granted, v.Remaining = 0, 0
	for _, t := range l.Shards {
		st, err := n.Registry.engine.Stats(ctx, t.ID)
		if DeploymentFailed(err) {
			if err = n.countAway(ctx, t.ID, v); err == nil {
				continue
			}
		}
		if err != nil {
			return dibs.AsUnavailable(err, dibs.EffectNone)
		}
		v.Granted += st.Granted
		v.Remaining += st.Remaining + st.Moved
		v.JournalBacklog += backlogOf(t.At(), st.Head)
		v.SettleLagMS = max(v.SettleLagMS, t.progress.lagMS(&st, st.Now))
	}
	if v.Stock = v.Granted + v.Remaining; v.ShardsAway > 0 {
		// The shards that answer do not count what came to them from others. In the
		// ledger's sum of the stock no transfer shows.
		v.Stock, v.Remaining = stock, max(stock-v.Granted, 0)
	}
	if unsettled := max(v.Granted-settled, 0); c.InitialStatus() == dibs.Pending {
		v.Pending += unsettled
	} else {
		v.Confirmed += unsettled
	}
	for reason, n := range l.refusals() {
		v.Refused[reason] += n
	}
	return nil
}

// countAway counts what the ledger has of a shard that cannot be asked.
func (n *Node) countAway(ctx context.Context, id dibs.ShardID, v *api.StatsView) error {
	totals, err := n.Registry.ledger.Totals(ctx, id)
	if err != nil && !errors.Is(err, dibs.ErrNotFound) {
		return err
	}
	v.Granted += totals.Stock - totals.StockLeft
	v.ShardsAway++
	return nil
}

// refusals are this node's answers by reason, those that there were.
func (l *Campaign) refusals() map[string]int64 {
	by := map[string]int64{}
	for r := range l.refused {
		if n := l.refused[r].Load(); n > 0 {
			by[dibs.Reason(r).String()] += n
		}
	}
	return by
}

// Refused returns what this node has refused of a campaign since it started, by reason;
// nothing of one that it does not hold.
func (s *Registry) Refused(id string) map[string]int64 {
	if l := s.Live(id); l != nil {
		return l.refusals()
	}
	return map[string]int64{}
}

// Remaining is what a campaign can still grant. While the engine cannot tell,
// it is what the ledger has, which follows behind: a page is shown all the same.
func (n *Node) Remaining(ctx context.Context, c *dibs.Campaign) (int64, error) {
	if l, err := n.Loader.EnsureLive(ctx, c); err == nil && l != nil {
		if n, err := n.liveRemaining(ctx, l); err == nil {
			return n, nil
		}
	}
	sum, err := n.Totals(ctx, c)
	if err != nil {
		return 0, err
	}
	if sum.Epoch == 0 {
		return c.Stock.Total, nil
	}
	return sum.StockLeft, nil
}

// liveRemaining is what the engine can still grant of a campaign.
func (n *Node) liveRemaining(ctx context.Context, l *Campaign) (left int64, err error) {
	for _, t := range l.Shards {
		st, err := n.Registry.engine.Stats(ctx, t.ID)
		if err != nil {
			return 0, err
		}
		left += st.Remaining + st.Moved
	}
	return left, nil
}

// observe returns one campaign's numbers.
func (n *Node) observe(l *Campaign, waiting *int64) CampaignMetrics {
	c := l.Def()
	cm := CampaignMetrics{CampaignID: c.ID, Number: c.Number}
	for _, t := range l.Shards {
		if st, err := n.Registry.glance(context.Background(), t); err == nil {
			cm.Remaining += st.Remaining + st.Moved
			cm.Granted += st.Granted
			cm.Backlog += backlogOf(t.At(), st.Head)
			cm.LagMS = max(cm.LagMS, t.lagMS(&st, n.Registry.now()))
			*waiting += st.Queued + st.Waiting
		}
	}
	cm.Low = c.Low(cm.Remaining)
	for r := range l.refused {
		cm.Refused[r] = l.refused[r].Load()
	}
	return cm
}

// NodeMetrics is a snapshot of what a node's live part did since it started, and of
// how its campaigns stand.
type NodeMetrics struct {
	// Refused counts answers that were no grants, by reason.
	Refused [dibs.ReasonCount]int64
	// Settled, SettleBatches, SettleErrors and SettleTime are the settling's;
	// SettleSizes and SettleTimes are those of its transactions, in entries and
	// nanoseconds.
	Settled       int64
	SettleBatches int64
	SettleErrors  int64
	SettleTime    time.Duration
	SettleSizes   dibs.Tally
	SettleTimes   dibs.Tally
	// OutboxBehind is how many commands could not be sent to the engine the last
	// time, OutboxErrors how often that happened.
	OutboxBehind, OutboxErrors int64
	// Quarantined is how many journal entries are in quarantine, of any node.
	Quarantined int64
	// Halted is how many campaigns could not be loaded, or not be settled any more.
	Halted int64
	// Waiting is how many claims wait in the engine now.
	Waiting int64
	// Live is how many campaigns are live here. Campaigns are at most MaxObserved of
	// them, the newest.
	Live      int64
	Campaigns []CampaignMetrics
}

// MaxObserved is how many campaigns a snapshot tells of one by one.
const MaxObserved = 200

// CampaignMetrics is one live campaign's part of NodeMetrics.
type CampaignMetrics struct {
	CampaignID string
	Number     uint32
	Remaining  int64
	Granted    int64
	Backlog    int64
	LagMS      int64
	// Low says that the stock is low.
	Low bool
	// Refused counts refusals by reason.
	Refused [dibs.ReasonCount]int64
}

// Metrics returns a snapshot.
func (n *Node) Metrics() NodeMetrics {
	set, out := n.Settler, n.Outbox
	m := NodeMetrics{
		Settled: set.settled.Load(), SettleBatches: set.settleBatchCount.Load(), SettleErrors: set.settleErrors.Load(),
		SettleTime: time.Duration(set.settleNanos.Load()), SettleSizes: set.settleSizes.Tally(), SettleTimes: set.settleTimes.Tally(),
		OutboxBehind: out.behind.Load(), OutboxErrors: out.errors.Load(),
		Quarantined: n.Quarantine.Count(), Halted: n.Loader.haltedCount(),
	}
	for _, l := range n.Registry.refusals(&m.Refused) {
		m.Live++
		m.Campaigns = append(m.Campaigns, n.observe(l, &m.Waiting))
	}
	slices.SortFunc(m.Campaigns, func(a, b CampaignMetrics) int { return cmp.Compare(b.Number, a.Number) })
	m.Campaigns = m.Campaigns[:min(len(m.Campaigns), MaxObserved)]
	return m
}

// Backlog is the most that waits to be settled of any campaign here, in entries,
// and the longest that any has waited.
func (n *Node) Backlog(ctx context.Context) (entries, lagMS int64) {
	for t := range n.Registry.eachShard {
		if st, err := n.Registry.glance(ctx, t); err == nil {
			entries = max(entries, backlogOf(t.At(), st.Head))
			lagMS = max(lagMS, t.lagMS(&st, n.Registry.now()))
		}
	}
	return entries, lagMS
}

// Stats returns a campaign's numbers as they are now, grants counted that are not
// settled yet. The refusals are this node's.
func (n *Node) Stats(ctx context.Context, c *dibs.Campaign) (api.StatsView, error) {
	v := api.StatsView{CampaignID: c.ID, Stock: c.Stock.Total, Remaining: c.Stock.Total, Refused: map[string]int64{}, RefusedCountedBy: api.ThisNode}
	sum, err := n.Totals(ctx, c)
	if err != nil {
		return v, err
	}
	v.Pending, v.Confirmed, v.Released, v.Refunded = sum.Pending, sum.Confirmed, sum.Released, sum.Refunded
	v.Granted = sum.Stock - sum.StockLeft
	if sum.Epoch > 0 {
		v.Stock, v.Remaining = sum.Stock, sum.StockLeft
	}
	l, err := n.Loader.EnsureLive(ctx, c)
	if err != nil || l == nil {
		return v, err
	}
	settled := v
	if err = n.liveStats(ctx, l, c, &v); errors.Is(err, dibs.ErrNotOpen) && !n.Registry.Sells(c) {
		// It has left the engine, by another node.
		return settled, nil
	}
	return v, err
}
