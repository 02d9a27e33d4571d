package dibs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// counters count what this node did since it started.
type counters struct {
	granted       atomic.Int64
	replayed      atomic.Int64
	settled       atomic.Int64
	settleBatches atomic.Int64
	settleErrors  atomic.Int64
	settleNanos   atomic.Int64
	expired       atomic.Int64
	credited      atomic.Int64
	outboxErrors  atomic.Int64
	// outboxBehind is how many commands could not be sent the last time.
	outboxBehind atomic.Int64
	// settleSizes are the entries of each transaction, settleTimes what it took.
	settleSizes, settleTimes *Histogram
	// elsewhere counts refusals of claims on campaigns that are not live here.
	elsewhere [ReasonCount]atomic.Int64

	// leaving guards gone: what campaigns refused that are not live here any more.
	leaving sync.Mutex
	gone    [ReasonCount]int64
}

// Metrics is a snapshot of what this node did since it started and how its
// campaigns stand.
type Metrics struct {
	// Granted counts claims granted by this node, repeats not counted, Replayed the
	// repeats, and Refused all other answers, by reason.
	Granted  int64
	Replayed int64
	Refused  [ReasonCount]int64
	// Expired counts unpaid claims that this node released.
	Expired int64
	// Credited counts shares of red packets that this node credited.
	Credited int64
	// Settled, SettleBatches, SettleErrors and SettleTime are the settling's;
	// SettleSizes and SettleTimes are those of its transactions, in entries and
	// nanoseconds.
	Settled       int64
	SettleBatches int64
	SettleErrors  int64
	SettleTime    time.Duration
	SettleSizes   Tally
	SettleTimes   Tally
	// Gates, Engine and Ledger are how long claims spent there, in nanoseconds, of
	// those that are timed.
	Gates, Engine, Ledger Tally
	// Work is the engine's; Waiting is how many claims wait in it now.
	Work    EngineWork
	Waiting int64
	// Level is the level that was asked for, and LevelSettings are what was found last
	// of each setting that it depends on.
	Level         string
	LevelSettings []Finding
	// OutboxBehind is how many commands could not be sent to the engine the last
	// time, OutboxErrors how often that happened.
	OutboxBehind, OutboxErrors int64
	// Quarantined is how many journal entries are in quarantine, of any node.
	Quarantined int64
	// Halted is how many campaigns could not be loaded, or not be settled any more,
	// and Stuck how many red packets do not get on.
	Halted, Stuck int64
	// Live is how many campaigns are live here. Campaigns are at most MaxObserved of
	// them, the newest.
	Live      int64
	Campaigns []CampaignMetrics
	// Sinks are all takers of the events, as they were some seconds ago, and so are
	// the webhooks that were disabled, and that fail.
	Sinks                             []SinkView
	WebhooksDisabled, WebhooksFailing int64
	// Pushes are the announcements.
	Pushes PushMetrics
}

// MaxObserved is how many campaigns a snapshot tells of one by one.
const MaxObserved = 200

// CampaignMetrics is one live campaign's part of Metrics.
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
	Refused [ReasonCount]int64
}

// Observe returns a snapshot of the service's numbers.
func (s *Service) Observe() Metrics {
	n := &s.counters
	m := Metrics{
		Granted: n.granted.Load(), Replayed: n.replayed.Load(), Expired: n.expired.Load(), Credited: n.credited.Load(), Settled: n.settled.Load(),
		SettleBatches: n.settleBatches.Load(), SettleErrors: n.settleErrors.Load(), SettleTime: time.Duration(n.settleNanos.Load()),
		SettleSizes: n.settleSizes.Tally(), SettleTimes: n.settleTimes.Tally(),
		Gates: s.stages.gates.Tally(), Engine: s.stages.engine.Tally(), Ledger: s.stages.ledger.Tally(),
		OutboxBehind: n.outboxBehind.Load(), OutboxErrors: n.outboxErrors.Load(),
		Quarantined: int64(len(s.quarantined())), Halted: s.haltedCount(), Stuck: int64(s.packets.troubled()),
		Pushes: s.pushing.numbers.metrics(s.cfg.Now()),
	}
	if w, ok := s.cfg.Engine.(Worker); ok {
		m.Work = w.Work()
	}
	m.Level, m.LevelSettings = s.level()
	if sinks := s.sinksSeen.Load(); sinks != nil {
		m.Sinks = *sinks
	}
	if hooks := s.webhooksSeen.Load(); hooks != nil {
		m.WebhooksDisabled, m.WebhooksFailing = hooks.disabled, hooks.failing
	}
	for _, l := range s.refusals(&m.Refused) {
		m.Live++
		m.Campaigns = append(m.Campaigns, s.observe(l, &m.Waiting))
	}
	slices.SortFunc(m.Campaigns, func(a, b CampaignMetrics) int { return cmp.Compare(b.Number, a.Number) })
	m.Campaigns = m.Campaigns[:min(len(m.Campaigns), MaxObserved)]
	return m
}

// observe returns one campaign's numbers.
func (s *Service) observe(l *live, waiting *int64) CampaignMetrics {
	c := l.campaign.Load()
	cm := CampaignMetrics{CampaignID: c.ID, Number: c.Number}
	for _, t := range l.shards {
		if st, err := s.glance(context.Background(), t); err == nil {
			cm.Remaining += st.Remaining
			cm.Granted += st.Granted
			cm.Backlog += backlogOf(t.at(), st.Head)
			cm.LagMS = max(cm.LagMS, s.lagMS(t, st.Head))
			*waiting += st.Queued + st.Waiting
		}
	}
	cm.Low = c.low(cm.Remaining)
	for r := range l.refused {
		cm.Refused[r] = l.refused[r].Load()
	}
	return cm
}

// refusals adds all refusals of this node up and returns the live campaigns. A
// sum never falls: who leaves meanwhile is in it once.
func (s *Service) refusals(sum *[ReasonCount]int64) (all []*live) {
	n := &s.counters
	n.leaving.Lock()
	defer n.leaving.Unlock()
	*sum = n.gone
	for r := range sum {
		sum[r] += n.elsewhere[r].Load()
	}
	s.lives.Range(func(_, v any) bool {
		l := v.(*live)
		all = append(all, l)
		for r := range l.refused {
			sum[r] += l.refused[r].Load()
		}
		return true
	})
	return all
}

// dropLive takes a campaign off this node. What it refused stays counted.
func (s *Service) dropLive(c *Campaign) {
	n := &s.counters
	n.leaving.Lock()
	defer n.leaving.Unlock()
	if v, ok := s.lives.LoadAndDelete(c.ID); ok {
		l := v.(*live)
		for r := range l.refused {
			n.gone[r] += l.refused[r].Load()
		}
	}
	s.byNumber.Delete(c.Number)
}

// haltedCount counts the campaigns that could not be loaded here, or not be
// settled any more.
func (s *Service) haltedCount() int64 {
	halted := map[string]bool{}
	s.admissions.Range(func(id, v any) bool {
		if v.(*admission).rest.failing() != nil {
			halted[id.(string)] = true
		}
		return true
	})
	s.halts.Range(func(id, _ any) bool {
		halted[id.(string)] = true
		return true
	})
	s.eachShard(func(t *settling) bool {
		if t.rest.failing() != nil {
			halted[t.l.campaign.Load().ID] = true
		}
		return true
	})
	return int64(len(halted))
}

// webhooksSeen is how the webhooks were when they were looked at last.
type webhooksSeen struct{ disabled, failing int64 }

// seeWebhooks notes how the webhooks are, for the metrics.
func (s *Service) seeWebhooks(ctx context.Context) {
	list, err := s.ledger.Endpoints(ctx)
	if err != nil {
		// That the ledger does not answer is said elsewhere.
		return
	}
	var seen webhooksSeen
	for i := range list {
		switch {
		case list[i].Disabled:
			seen.disabled++
		case !list[i].FailingSince.IsZero():
			seen.failing++
		}
	}
	s.webhooksSeen.Store(&seen)
}
