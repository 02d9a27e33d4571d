package dibs

import (
	"context"
	"errors"
	"fmt"
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
	// Overload is how much this node has to do; absent where nobody measures it.
	Overload *OverloadView `json:"overload,omitempty"`
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

// whyNotReady is what is shown of a dependency by its error.
func whyNotReady(name string, err error) string {
	switch {
	case errors.Is(err, ErrElsewhere):
		return "a campaign is open on another server of the engine, which has a later history than this one; the log says which campaign"
	case errors.Is(err, ErrGap):
		return "the ledger of a campaign is older than its journal: dibs verify says which, restore a newer backup, or decide with " +
			"dibs verify --repair --older-ledger continue|end"
	}
	return notReady[name]
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
			d = DependencyView{Error: whyNotReady(name, err)}
			h.Ready = false
		}
		if name == "engine" {
			s.showLevel(&d)
		}
		h.Dependencies[name] = d
	}
	h.nameTheCause()
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
	if s.nearlyFull(h.JournalBacklog) {
		d := h.Dependencies["settling"]
		d.OK, d.Error = false, fmt.Sprintf("%d entries of a campaign wait to be settled; at %d its claims are refused", h.JournalBacklog, s.cfg.MaxBacklog)
		h.Dependencies["settling"], h.Ready = d, false
	}
	return h
}

// nameTheCause says of what needs a dependency that is away that it waits for that:
// it is no fault of its own.
func (h *HealthView) nameTheCause() {
	for _, cause := range []string{"engine", "ledger"} {
		if h.Dependencies[cause].OK {
			continue
		}
		for _, name := range []string{"settling", "campaigns"} {
			if d := h.Dependencies[name]; !d.OK {
				d.Error = "waits for the " + cause
				h.Dependencies[name] = d
			}
		}
		return
	}
}

// SetOverload adds how much the node has to do. While a dependency is away that
// claims wait for, they pile up and are refused: that is no overload then.
func (h *HealthView) SetOverload(v OverloadView) {
	away := !h.Dependencies["engine"].OK || h.Durability == LevelLedgered && !h.Dependencies["ledger"].OK
	if away && !v.MemoryFull {
		v.Overloaded, v.Why = false, ""
	}
	h.Overload = &v
	h.Ready = h.Ready && !v.Overloaded
}

// The parts of the most entries that may wait above which a node is not ready,
// and below which it is again.
const (
	backlogHigh = 0.9
	backlogLow  = 0.75
)

// nearlyFull reports whether claims are about to be refused because too many wait
// to be settled.
func (s *Service) nearlyFull(backlog int64) bool {
	part := float64(backlog) / float64(s.cfg.MaxBacklog)
	near := part >= backlogHigh || s.backlogNear.Load() && part >= backlogLow
	s.backlogNear.Store(near)
	return near
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
	err := s.stranded()
	s.halts.Range(func(id, cause any) bool {
		if err == nil {
			err = fmt.Errorf("campaign %s: %w", id, cause.(error))
		}
		return err == nil
	})
	s.eachShard(func(t *settling) bool {
		// What is over is not loaded again, and nobody waits for it, unless it cannot
		// be settled.
		cause := t.rest.failing()
		if err == nil && cause != nil && (s.sells(t.l.campaign.Load()) || errors.Is(cause, ErrGap)) {
			err = cause
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if stuck := s.stuckTail.Load(); stuck != nil {
		return *stuck
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
