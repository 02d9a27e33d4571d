package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// reachMin is how long after the start a deployment is looked for again that could not be
// reached, and reachMost the longest pause between two attempts, which double until then.
const (
	reachMin  = time.Second
	reachMost = 8 * time.Second
)

// reach looks for a deployment that could not be reached until it can be used, or ctx
// ends; false then.
func (e *Engine) reach(ctx context.Context, m *member) bool {
	said := ""
	for pause := reachMin; wait.Sleep(ctx, pause); pause = min(2*pause, reachMost) {
		err := e.enter(ctx, m)
		switch {
		case err == nil:
			e.log.Info("a deployment of the engine can be reached, and is used from now on", "deployment", m.number)
			return true
		case ctx.Err() != nil:
			return false
		case !errors.Is(err, live.ErrUnfit):
			// Its claims were refused as unavailable before, and still are: that was logged.
			m.refuse(fmt.Errorf("%w: %w", live.ErrAway, err))
			said = ""
			continue
		}
		m.refuse(err)
		pause = reachMost
		if text := err.Error(); text != said {
			said = text
			e.log.Error(saysUnfit, "deployment", m.number, "err", err)
		}
	}
	return false
}

// enter connects to a deployment and makes it one that is used.
func (e *Engine) enter(ctx context.Context, m *member) error {
	d, err := m.open(ctx)
	if err != nil {
		return err
	}
	e.entering.Lock()
	defer e.entering.Unlock()
	asking, cancel := context.WithTimeout(ctx, watchWait)
	defer cancel()
	runs, err := runsAt(asking, d)
	if err == nil {
		err = e.apart(asking, m, runs)
	}
	if err != nil {
		return errors.Join(err, d.Close(ctx))
	}
	e.tellHooks(d, e.changed, e.product)
	m.refuse(live.ErrAway)
	m.set(d)
	m.runs.Store(&runs)
	m.away.Store(false)
	return nil
}

// fit returns nil when a deployment answers and may be used. Servers that ran before are
// known. A run that is new may be that of another Redis at the same address: it is checked
// first, as at a start.
func (e *Engine) fit(ctx context.Context, m *member) error {
	runs, err := runsAt(ctx, m.deployment())
	if err != nil {
		return err
	}
	isKnown := func(run string) bool { return slices.Contains(m.knownRuns(), run) }
	isNew := func(run string) bool { return !isKnown(run) }
	if !slices.ContainsFunc(runs, isNew) {
		return nil
	}
	if m.check != nil {
		err = m.check(ctx, m.deployment())
	}
	if err == nil {
		err = e.apart(ctx, m, runs)
	}
	switch {
	case err == nil:
		m.runs.Store(&runs)
	case !errors.Is(err, live.ErrUnfit) && slices.ContainsFunc(runs, isKnown):
		// A part of the Cluster is as before, and so it is the same one. The others are
		// checked with the next look.
		return nil
	}
	return err
}

// runsAt returns the runs of the servers of a deployment that answer, of which there is one
// at least.
func runsAt(ctx context.Context, d Deployment) ([]string, error) {
	servers, err := d.Servers(ctx)
	runs := runsOf(servers)
	if err == nil && len(runs) == 0 {
		err = live.ErrAway
	}
	return runs, err
}

// apart returns an error when a member has a server in common with another one that is used:
// two addresses of one server are no two deployments. Of one that does not answer now, the
// servers count that were checked last.
func (e *Engine) apart(ctx context.Context, m *member, mine []string) error {
	others := slices.DeleteFunc(e.reached(), func(other *member) bool { return other == m })
	for i, theirs := range each(others, func(m *member) []string {
		if runs, err := runsAt(ctx, m.deployment()); err == nil {
			return runs
		}
		return m.knownRuns()
	}) {
		if slices.ContainsFunc(mine, func(run string) bool { return slices.Contains(theirs, run) }) {
			return fmt.Errorf("%w: it is the same server as deployment %d", live.ErrUnfit, others[i].number)
		}
	}
	return nil
}

// knownRuns are the runs of the servers that were checked last.
func (m *member) knownRuns() []string {
	if runs := m.runs.Load(); runs != nil {
		return *runs
	}
	return nil
}
