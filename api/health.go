package api

import (
	"cmp"
	"maps"

	"github.com/dibs-dev/dibs"
)

// HealthView is whether the service can do its work, dependency by dependency.
type HealthView struct {
	Ready bool `json:"ready"`
	// Durability is the level at which claims are answered.
	Durability   string                    `json:"durability"`
	Dependencies map[string]DependencyView `json:"dependencies"`
	// Deployments says of each deployment of the engine, by its number in the ledger, whether
	// it can decide claims; an engine that is one has number 1. It is for metrics: people read
	// the warning.
	Deployments map[int]bool `json:"-"`
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
	// ErrorZH and WarningZH are the same in Chinese.
	ErrorZH   string `json:"-"`
	WarningZH string `json:"-"`
}

// Fail says why the dependency cannot do its work.
func (d *DependencyView) Fail(why dibs.Text) { d.OK, d.Error, d.ErrorZH = false, why.EN, why.ZH }

// Warn says what somebody should look at.
func (d *DependencyView) Warn(why dibs.Text) { d.Warning, d.WarningZH = why.EN, why.ZH }

// In returns the view in one language, Chinese when zh is set, else English.
func (h *HealthView) In(zh bool) HealthView {
	said := *h
	if zh {
		said.Dependencies = maps.Clone(h.Dependencies)
		for name, d := range said.Dependencies {
			d.Error, d.Warning = cmp.Or(d.ErrorZH, d.Error), cmp.Or(d.WarningZH, d.Warning)
			said.Dependencies[name] = d
		}
	}
	return said
}

// NameTheCause says of what needs a dependency that is away that it waits for that:
// it is no fault of its own.
func (h *HealthView) NameTheCause() {
	for _, cause := range []string{"engine", "ledger"} {
		if h.Dependencies[cause].OK {
			continue
		}
		waits := dibs.Text{EN: "waits for the " + cause, ZH: map[string]string{"engine": "等待引擎恢复", "ledger": "等待账本恢复"}[cause]}
		for _, name := range []string{"settling", "campaigns"} {
			if d := h.Dependencies[name]; !d.OK {
				d.Fail(waits)
				h.Dependencies[name] = d
			}
		}
		return
	}
}

// SetOverload adds how much the node has to do. While a dependency is away that
// claims wait for, they pile up and are refused: that is no overload then.
func (h *HealthView) SetOverload(v OverloadView) {
	away := !h.Dependencies["engine"].OK || h.Durability == dibs.LevelLedgered && !h.Dependencies["ledger"].OK
	if away && !v.MemoryFull {
		v.Overloaded, v.Why = false, ""
	}
	h.Overload = &v
	h.Ready = h.Ready && !v.Overloaded
}

// OverloadView is how much a node has to do, and whether that is too much.
type OverloadView struct {
	// Overloaded says that the node should get no more for a while, and Why.
	Overloaded bool   `json:"overloaded"`
	Why        string `json:"why,omitempty"`
	// MemoryFull says that memory is among the reasons.
	MemoryFull bool `json:"-"`
	// InFlight claims are with the engine now; Limit is how many may be.
	InFlight int64 `json:"in_flight"`
	Limit    int64 `json:"limit"`
	// ShedPerSecond is how many claims were refused for that lately.
	ShedPerSecond int64 `json:"shed_per_second"`
	// LatencyMS is how long claims that wait for the engine take, TargetMS how long
	// they may.
	LatencyMS int64 `json:"latency_ms"`
	TargetMS  int64 `json:"target_ms"`
	// MemoryBytes is what the process has of the system, MemoryLimitBytes what it
	// may have; 0 when there is no limit.
	MemoryBytes      int64 `json:"memory_bytes"`
	MemoryLimitBytes int64 `json:"memory_limit_bytes,omitempty"`
}
