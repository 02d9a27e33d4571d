package router

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dibs-dev/dibs"
)

// JournalShards lists the shards of all deployments; see dibs.Journal. When some fail it
// returns those of the others with the error.
func (e *Engine) JournalShards(ctx context.Context) ([]dibs.ShardID, error) {
	var shards []dibs.ShardID
	var errs []error
	seen := make(map[dibs.ShardID]bool)
	for _, l := range askAll(e, func(d Deployment) ([]dibs.ShardID, error) { return d.JournalShards(ctx) }) {
		errs = append(errs, l.err)
		for _, id := range l.answer {
			here, err := e.isOn(ctx, l.by, id)
			errs = append(errs, err)
			if here && !seen[id] {
				seen[id], shards = true, append(shards, id)
			}
		}
	}
	return shards, errors.Join(errs...)
}

// told is what a deployment has answered, or why it has not.
type told[T any] struct {
	by     *member
	answer T
	err    error
}

// tells asks a deployment, which has to be there.
func tells[T any](m *member, ask func(d Deployment) (T, error)) told[T] {
	answer, err := ask(m.deployment())
	return told[T]{m, answer, m.failed(err)}
}

// askAll asks all deployments; those that are away have refused.
func askAll[T any](e *Engine, ask func(d Deployment) (T, error)) []told[T] {
	return each(e.members, func(m *member) told[T] {
		if m.away.Load() {
			return told[T]{by: m, err: m.failed(m.refused())}
		}
		return tells(m, ask)
	})
}

// isOn reports whether a shard that a deployment lists is there. A deployment may still
// list a shard that was given to another one since: that counts no more.
func (e *Engine) isOn(ctx context.Context, m *member, id dibs.ShardID) (bool, error) {
	number, err := e.placedOn(ctx, id)
	return err == nil && (number == 0 || number == m.number), err
}

// HoldingsOf returns a user's grants on all deployments; see dibs.Engine.
func (e *Engine) HoldingsOf(ctx context.Context, user string) ([]dibs.Grant, error) {
	var grants []dibs.Grant
	for _, h := range askAll(e, func(d Deployment) ([]dibs.Grant, error) { return d.HoldingsOf(ctx, user) }) {
		if h.err != nil {
			return nil, h.err
		}
		for _, g := range h.answer {
			here, err := e.isOn(ctx, h.by, g.ShardID)
			if err != nil {
				return nil, err
			}
			if here {
				grants = append(grants, g)
			}
		}
	}
	return grants, nil
}

// Servers names the runs of all servers that answer, by deployment and address; see
// dibs.Engine.
func (e *Engine) Servers(ctx context.Context) (map[string]string, error) {
	all := make(map[string]string)
	var errs []error
	for _, n := range each(e.reached(), func(m *member) told[map[string]string] {
		runs, err := m.deployment().Servers(ctx)
		return told[map[string]string]{m, runs, err}
	}) {
		errs = append(errs, n.err)
		for addr, run := range n.answer {
			// Servers of two networks may have the same address.
			all[fmt.Sprintf("%d %s", n.by.number, addr)] = run
		}
	}
	return all, errors.Join(errs...)
}

// Abilities are those of all deployments together; see dibs.Abilities. The store is that
// of the first deployment. Each deployment is bound to its ledger before it is a member.
func (e *Engine) Abilities() dibs.Abilities {
	return dibs.Abilities{
		Stats: e.stats, Level: e.level, OnChange: e.onChange, Store: firstStore{e}, Deployments: e.deployments,
		Products: e.products,
	}
}

// products has each deployment ask f for the product of a campaign, which one may hold
// since it was alone. No campaign with a limit per product is opened here: the shards
// of its product may be on several deployments, and no step counts over them.
func (e *Engine) products(f func(campaign uint32) (string, error)) {
	e.entering.Lock()
	defer e.entering.Unlock()
	e.product = f
	for _, m := range e.reached() {
		e.tellHooks(m.deployment(), nil, f)
	}
}

// tellHooks has a deployment call the functions that are not nil, as far as it can.
func (e *Engine) tellHooks(d Deployment, changed func(dibs.ShardID), product func(uint32) (string, error)) {
	a := d.Abilities()
	if changed != nil && a.OnChange != nil {
		a.OnChange(changed)
	}
	if product != nil && a.Products != nil {
		a.Products(product)
	}
}

// deployments asks each deployment whether it can decide claims now.
func (e *Engine) deployments(ctx context.Context) map[int]error {
	answers := make(map[int]error, len(e.members))
	for i, err := range each(e.members, func(m *member) error {
		if m.away.Load() {
			return m.refused()
		}
		return m.deployment().Ping(ctx)
	}) {
		answers[e.members[i].number] = err
	}
	return answers
}

// Ping returns nil when some deployment can decide claims now; see dibs.Engine.
func (e *Engine) Ping(ctx context.Context) error {
	var errs []error
	for number, err := range e.deployments(ctx) {
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("deployment %d: %w", number, err))
	}
	return errors.Join(errs...)
}

// onChange has f called with the shards of all deployments.
func (e *Engine) onChange(f func(dibs.ShardID)) {
	e.entering.Lock()
	defer e.entering.Unlock()
	e.changed = f
	for _, m := range e.reached() {
		e.tellHooks(m.deployment(), f, nil)
	}
}

// stats adds up what the deployments have done in this process.
func (e *Engine) stats() dibs.EngineStats {
	var sum dibs.EngineStats
	for _, m := range e.reached() {
		one := m.deployment().Abilities().Stats()
		for into, from := range map[*dibs.Tally]dibs.Tally{&sum.Batches: one.Batches, &sum.Queued: one.Queued, &sum.Durable: one.Durable} {
			into.Bounds, into.Sum = from.Bounds, into.Sum+from.Sum
			into.Counts = slices.Concat(into.Counts, make([]int64, len(from.Counts)-len(into.Counts)))
			for i, n := range from.Counts {
				into.Counts[i] += n
			}
		}
		sum.Lost += one.Lost
	}
	return sum
}

// level returns the worst that was found of each setting, with the deployment's number
// where it is not as it should be.
func (e *Engine) level() (level string, settings []dibs.Finding) {
	for _, m := range e.reached() {
		wanted, found := m.deployment().Abilities().Level()
		level = wanted
		for _, f := range found {
			if !f.OK() {
				f.Found = fmt.Sprintf("%s on deployment %d", f.Found, m.number)
			}
			at := slices.IndexFunc(settings, func(have dibs.Finding) bool { return have.Subject == f.Subject })
			switch {
			case at < 0:
				settings = append(settings, f)
			case settings[at].OK() && !f.OK():
				settings[at] = f
			}
		}
	}
	return level, settings
}

// Durability is the weakest of the deployments'; see dibs.Engine.
func (e *Engine) Durability() string {
	levels := dibs.Levels()
	weakest := len(levels) - 1
	for _, m := range e.reached() {
		weakest = min(weakest, slices.Index(levels, m.deployment().Durability()))
	}
	return levels[max(weakest, 0)]
}

// MaxShards is the least of the deployments'; see dibs.Engine.
func (e *Engine) MaxShards() int {
	least := dibs.MaxShards
	for _, m := range e.reached() {
		least = min(least, m.deployment().MaxShards())
	}
	return least
}

// Shared is true: other processes route to the same deployments.
func (e *Engine) Shared() bool { return true }

// Appended is signalled after entries of any deployment; see dibs.Journal.
func (e *Engine) Appended() <-chan struct{} { return e.appended }

// runsOf returns the names of the servers that answer.
func runsOf(servers map[string]string) []string {
	return slices.DeleteFunc(slices.Collect(maps.Values(servers)), func(run string) bool { return run == "" })
}
