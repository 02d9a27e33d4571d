package router

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs/live"
)

const (
	// watchEvery is how often each deployment is asked whether it answers, and
	// watchWait how long it may take.
	watchEvery = time.Second
	watchWait  = time.Second
	// missesAway is how many such questions in a row stay without an answer until a
	// deployment counts as away: one may be lost with a connection.
	missesAway = 2
	// refreshEvery is after how many looks the placements are read again.
	refreshEvery = 2
)

// watch looks at the deployments until ctx ends.
func (e *Engine) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		each(e.reached(), func(m *member) struct{} {
			e.look(ctx, m)
			return struct{}{}
		})
		if n%refreshEvery != 0 {
			continue
		}
		if err := e.refresh(ctx); err != nil && ctx.Err() == nil {
			// The answer that was read before stands: the ledger's own health tells.
			e.log.Debug("the deployments of the shards could not be read", "err", err)
		}
	}
}

// look asks a deployment whether it answers: one of its servers is enough, since in a
// cluster each has shards of its own. One that answers and is another is not used.
func (e *Engine) look(ctx context.Context, m *member) {
	asking, cancel := context.WithTimeout(ctx, watchWait)
	defer cancel()
	err := e.fit(asking, m)
	if ctx.Err() != nil {
		return
	}
	switch {
	case err == nil:
		m.misses = 0
		if m.away.Swap(false) {
			e.log.Info("a deployment of the engine answers again", "deployment", m.number)
		}
	case errors.Is(err, live.ErrUnfit):
		said := m.refused().Error()
		m.refuse(err)
		if !m.away.Swap(true) || m.refused().Error() != said {
			e.log.Error(saysUnfit, "deployment", m.number, "err", err)
		}
	default:
		if m.misses++; m.misses < missesAway {
			return
		}
		m.refuse(live.ErrAway)
		if !m.away.Swap(true) {
			e.log.Error("a deployment of the engine does not answer: the claims of its campaigns are refused as unavailable until it does, those of others go on",
				"deployment", m.number)
		}
	}
}

// saysUnfit is logged of a deployment that answers and must not be used.
const saysUnfit = "a deployment of the engine answers and cannot be used: the claims of its campaigns are refused as unavailable until it can"
