package live

import (
	"context"
	"maps"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// seeServersEvery is how often the ledger is told which servers are alive.
const seeServersEvery = dibs.ServerLife / 5

// serversLoop tells the ledger which servers are alive, from one node of all that
// speak to them.
func (s *Poller) serversLoop(ctx context.Context) {
	for s.engine.Shared() && wait.Sleep(ctx, seeServersEvery) {
		if s.HasFleetLease() {
			s.seeServers(ctx)
		}
	}
}

// seeServers tells the ledger which servers of the engine answer, and which are
// gone for certain: at their address another one answers.
func (s *Poller) seeServers(ctx context.Context) {
	if !s.engine.Shared() {
		return
	}
	now, err := s.engine.Servers(ctx)
	if err != nil {
		s.log.Warn("the engine's servers could not be asked who they are", "err", err)
		return
	}
	var gone []string
	for addr, run := range s.servers {
		if is, ok := now[addr]; ok && is != run && !slices.Contains(slices.Collect(maps.Values(now)), run) {
			gone = append(gone, run)
		}
	}
	seen := slices.Compact(slices.Sorted(maps.Values(now)))
	elsewhere, err := s.ledger.SeeServers(ctx, slices.DeleteFunc(seen, func(run string) bool { return run == "" }), gone)
	if err != nil {
		s.log.Warn("the ledger could not be told which servers of the engine are alive", "err", err)
		return
	}
	s.servers = now
	for _, id := range elsewhere {
		// A server that was left behind goes on granting until its shards are compared
		// with the ledger.
		if t := s.registry.Shard(id); t != nil {
			fence, _ := t.progress.fenced()
			s.loader.fencedOff(t, fence)
		}
	}
}
