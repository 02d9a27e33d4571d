package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

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
	case errors.Is(err, dibs.ErrElsewhere):
		return "a campaign is open on another server of the engine, which has a later history than this one; the log says which campaign"
	case errors.Is(err, dibs.ErrGap):
		return "the ledger of a campaign is older than its journal: dibs verify says which, restore a newer backup, or decide with " +
			"dibs verify --repair --older-ledger continue|end"
	}
	return notReady[name]
}

// pingTimeout bounds the question to each dependency.
const pingTimeout = 2 * time.Second

// Health asks each dependency. A ledger that does not answer makes the service
// unready, although claims go on while the journal has room.
func (s *Service) Health(ctx context.Context) api.HealthView {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	h := api.HealthView{Ready: true, Durability: s.Durability(), Dependencies: map[string]api.DependencyView{}}
	for name, ping := range map[string]func(context.Context) error{
		"engine": s.engine.Ping, "ledger": s.cfg.Ledger.Database.Ping, "settling": s.Live.SettlingHealth, "campaigns": s.Live.CampaignsHealth,
	} {
		d := api.DependencyView{OK: true}
		if err := ping(ctx); err != nil {
			// The cause may name hosts and paths: it goes to the log.
			s.log.Warn("a dependency is not ready", "dependency", name, "err", err)
			d = api.DependencyView{Error: whyNotReady(name, err)}
			h.Ready = false
		}
		if name == "engine" {
			s.showLevel(&d)
		}
		h.Dependencies[name] = d
	}
	h.NameTheCause()
	if n := s.Live.Quarantine.Count(); n > 0 {
		d := h.Dependencies["settling"]
		d.Warning = fmt.Sprintf("%d journal entries are in quarantine: dibs verify lists them, dibs verify --repair tries them again", n)
		h.Dependencies["settling"] = d
	}
	if n := s.Funds.Stuck(); n > 0 {
		d := h.Dependencies["campaigns"]
		d.Warning = fmt.Sprintf("%d red packets do not get on: their funds say why, in dibs campaign show", n)
		h.Dependencies["campaigns"] = d
	}
	if d, ok := s.Events.Health(ctx); ok {
		h.Dependencies["events"] = d
	}
	h.JournalBacklog, h.SettleLagMS = s.Live.Backlog(ctx)
	if s.nearlyFull(h.JournalBacklog) {
		d := h.Dependencies["settling"]
		d.OK, d.Error = false, fmt.Sprintf("%d entries of a campaign wait to be settled; at %d its claims are refused", h.JournalBacklog, s.cfg.MaxBacklog)
		h.Dependencies["settling"], h.Ready = d, false
	}
	return h
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
		return dibs.LevelLedgered
	}
	return s.engine.Durability()
}

// level is the level that claims are answered at when all is well, and the settings
// that it depends on; none where the engine does not watch them.
func (s *Service) level() (string, []dibs.Finding) {
	k, ok := s.cfg.Engine.(dibs.LevelKeeper)
	if !ok {
		return s.Durability(), nil
	}
	level, settings := k.Level()
	if s.cfg.Ledgered {
		level = dibs.LevelLedgered
	}
	return level, settings
}

// showLevel adds to what is shown of the engine which settings take its level away.
func (s *Service) showLevel(d *api.DependencyView) {
	level, settings := s.level()
	var lost []string
	for _, f := range settings {
		if !f.OK() {
			lost = append(lost, f.String())
		}
	}
	switch {
	case len(lost) == 0:
	case d.OK:
		d.Warning = "the level " + level + " is not given, and claims are granted all the same: " + strings.Join(lost, "; ")
	default:
		d.Error = "claims are refused, since the level " + level + " is not given: " + strings.Join(lost, "; ")
	}
}
