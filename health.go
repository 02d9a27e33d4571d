package dibs

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// HealthView is whether the service can do its work, dependency by dependency.
type HealthView struct {
	Ready bool `json:"ready"`
	// Durability is the level at which claims are answered.
	Durability   string                    `json:"durability"`
	Dependencies map[string]DependencyView `json:"dependencies"`
	// SettleLagMS and JournalBacklog are the worst of all campaigns.
	SettleLagMS    int64 `json:"settle_lag_ms"`
	JournalBacklog int64 `json:"journal_backlog"`
}

// DependencyView is one dependency's part of the health.
type DependencyView struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Warning is what somebody should look at, although the work goes on.
	Warning string `json:"warning,omitempty"`
}

// notReady is what is shown of a dependency that cannot do its work.
var notReady = map[string]string{
	"engine":    "the engine cannot make claims durable; the log says why",
	"ledger":    "the ledger does not answer; the log says why",
	"campaigns": "a campaign could not be loaded into the engine, or not be settled; the log says which and why",
	"settling":  "the journal cannot be settled into the ledger; the log says why",
}

// pingTimeout bounds the question to each dependency.
const pingTimeout = 2 * time.Second

// Health asks each dependency. A ledger that does not answer makes the service
// unready, although claims go on while the journal has room.
func (s *Service) Health(ctx context.Context) HealthView {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	h := HealthView{Ready: true, Durability: s.Durability(), Dependencies: map[string]DependencyView{}}
	for name, ping := range map[string]func(context.Context) error{
		"engine": s.engine.Ping, "ledger": s.ledger.Ping, "settling": s.settlingHealth, "campaigns": s.campaignsHealth,
	} {
		d := DependencyView{OK: true}
		if err := ping(ctx); err != nil {
			// The cause may name hosts and paths: it goes to the log.
			s.log.Warn("a dependency is not ready", "dependency", name, "err", err)
			d = DependencyView{Error: notReady[name]}
			h.Ready = false
		}
		h.Dependencies[name] = d
	}
	if n := len(s.quarantined()); n > 0 {
		d := h.Dependencies["settling"]
		d.Warning = fmt.Sprintf("%d journal entries are in quarantine: dibs verify lists them, dibs verify --repair tries them again", n)
		h.Dependencies["settling"] = d
	}
	if n := s.packets.troubled(); n > 0 {
		d := h.Dependencies["campaigns"]
		d.Warning = fmt.Sprintf("%d red packets do not get on: their funds say why, in dibs campaign show", n)
		h.Dependencies["campaigns"] = d
	}
	if d, ok := s.eventsHealth(ctx); ok {
		h.Dependencies["events"] = d
	}
	s.eachShard(func(t *settling) bool {
		if st, err := s.glance(ctx, t); err == nil {
			h.JournalBacklog = max(h.JournalBacklog, backlogOf(t.at(), st.Head))
			h.SettleLagMS = max(h.SettleLagMS, s.lagMS(t, st.Head))
		}
		return true
	})
	return h
}

// Durability names the level at which claims are answered, one of Levels.
func (s *Service) Durability() string {
	if s.cfg.Ledgered {
		return LevelLedgered
	}
	return s.engine.Durability()
}

// campaignsHealth returns whether every published campaign is in the engine.
func (s *Service) campaignsHealth(context.Context) error {
	if s.strandedAny() {
		return ErrNotOpen
	}
	waits := false
	s.eachShard(func(t *settling) bool {
		waits = t.rest.failing()
		return !waits
	})
	if waits {
		return ErrNotOpen
	}
	if s.stuckTails.Load() {
		return ErrGap
	}
	return nil
}

// settlingHealth returns why a shard could not be settled the last time.
func (s *Service) settlingHealth(context.Context) error {
	var first error
	s.eachShard(func(t *settling) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		first = t.lastErr
		return first == nil
	})
	return first
}

// counters count what this node did since it started.
type counters struct {
	granted       atomic.Int64
	settled       atomic.Int64
	settleBatches atomic.Int64
	settleErrors  atomic.Int64
	settleNanos   atomic.Int64
	expired       atomic.Int64
	credited      atomic.Int64
}

// Metrics is a snapshot of what this node did since it started and how its
// campaigns stand.
type Metrics struct {
	// Granted counts claims granted by this node, repeats not counted.
	Granted int64
	// Expired counts unpaid claims that this node released.
	Expired int64
	// Credited counts shares of red packets that this node credited.
	Credited int64
	// Settled, SettleBatches, SettleErrors and SettleTime are the settling's.
	Settled       int64
	SettleBatches int64
	SettleErrors  int64
	SettleTime    time.Duration
	// Quarantined is how many journal entries are in quarantine, of any node.
	Quarantined int64
	Campaigns   []CampaignMetrics
	// Sinks are all takers of the events, as they were some seconds ago.
	Sinks []SinkView
}

// CampaignMetrics is one live campaign's part of Metrics.
type CampaignMetrics struct {
	CampaignID string
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
	m := Metrics{
		Granted: s.counters.granted.Load(), Expired: s.counters.expired.Load(), Credited: s.counters.credited.Load(), Settled: s.counters.settled.Load(),
		SettleBatches: s.counters.settleBatches.Load(), SettleErrors: s.counters.settleErrors.Load(),
		SettleTime:  time.Duration(s.counters.settleNanos.Load()),
		Quarantined: int64(len(s.quarantined())),
	}
	if sinks := s.sinksSeen.Load(); sinks != nil {
		m.Sinks = *sinks
	}
	s.lives.Range(func(_, v any) bool {
		l := v.(*live)
		cm := CampaignMetrics{CampaignID: l.campaign.Load().ID}
		for _, t := range l.shards {
			if st, err := s.glance(context.Background(), t); err == nil {
				cm.Remaining += st.Remaining
				cm.Granted += st.Granted
				cm.Backlog += backlogOf(t.at(), st.Head)
				cm.LagMS = max(cm.LagMS, s.lagMS(t, st.Head))
			}
		}
		cm.Low = l.campaign.Load().low(cm.Remaining)
		for r := range l.refused {
			cm.Refused[r] = l.refused[r].Load()
		}
		m.Campaigns = append(m.Campaigns, cm)
		return true
	})
	return m
}
