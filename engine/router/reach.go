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
			e.log.Error("a deployment of the engine answers and cannot be used: the claims of its campaigns are refused as unavailable until it can",
				"deployment", m.number, "err", err)
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
	if err := e.apart(ctx, d); err != nil {
		return errors.Join(err, d.Close(ctx))
	}
	e.tellHooks(d, e.changed, e.product)
	m.refuse(live.ErrAway)
	m.set(d)
	m.away.Store(false)
	return nil
}

// apart returns an error when a deployment has a server in common with one that is used:
// two addresses of one server are no two deployments. Of one that does not answer now, the
// servers count that answered last.
func (e *Engine) apart(ctx context.Context, d Deployment) error {
	asking, cancel := context.WithTimeout(ctx, watchWait)
	defer cancel()
	servers, err := d.Servers(asking)
	if err != nil {
		return err
	}
	mine := runsOf(servers)
	if len(mine) == 0 {
		return live.ErrAway
	}
	reached := e.reached()
	for i, theirs := range each(reached, func(m *member) []string { return m.ask(asking) }) {
		if slices.ContainsFunc(mine, func(run string) bool { return slices.Contains(theirs, run) }) {
			return fmt.Errorf("%w: it is the same server as deployment %d", live.ErrUnfit, reached[i].number)
		}
	}
	return nil
}

// ask returns the runs of the servers that answer, or of those that answered last when
// none does.
func (m *member) ask(ctx context.Context) []string {
	servers, err := m.deployment().Servers(ctx)
	if runs := runsOf(servers); err == nil && len(runs) > 0 {
		m.runs.Store(&runs)
	}
	if runs := m.runs.Load(); runs != nil {
		return *runs
	}
	return nil
}
