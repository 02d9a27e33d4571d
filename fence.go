package dibs

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Every shard has an epoch in the ledger: the fence. A node notes it when it joins
// the shard, and whatever it writes by what it read since carries it. Whoever loads
// the shard raises the epoch, so that nothing of a history that was given up reaches
// the ledger. Which server may take a shard over is decided by what its journal has,
// and by which servers are alive; see Settlement.LoadShard.

// opener says where a shard's next epoch would begin, and where its journal ends.
func (s *Service) opener(ctx context.Context, id ShardID) (end Cursor, by Opener, err error) {
	if end, err = s.engine.JournalEnd(ctx, id); err != nil {
		return end, by, err
	}
	by.Epoch = end.Epoch
	by.Server, err = s.engine.Server(ctx, id)
	return end, by, err
}

// fits says where a shard's next epoch would begin, or returns ErrGap when its
// journal does not go on where the ledger ends.
func (s *Service) fits(ctx context.Context, id ShardID) (Opener, error) {
	end, by, err := s.opener(ctx, id)
	if err != nil {
		return by, err
	}
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return by, err
	}
	return by, s.continues(ctx, id, totals.Position, end)
}

// fencedOff has a shard joined again whose epoch was raised since this node joined
// it under a fence. Until then nothing of it is settled here.
func (s *Service) fencedOff(ctx context.Context, t *settling, fence uint16) {
	if t.leave(fence) {
		// Also when it is over: another node may have it open, for a late payment or to
		// bring what is left of a red packet home.
		s.rejoin(ctx, t)
	}
}

// askPosition takes a shard's position from the ledger's row, and reports whether
// this node had it right. An answer that comes after this node has settled on says
// nothing any more: the journal may have been trimmed behind its back.
func (s *Service) askPosition(ctx context.Context, t *settling) (same bool, err error) {
	fence, position := t.place()
	totals, err := s.ledger.Totals(ctx, t.id)
	switch {
	case err != nil:
		return false, err
	case fence != totals.Epoch:
		s.fencedOff(ctx, t, fence)
	case position != totals.Position:
		t.moveFrom(fence, position, totals.Position)
	}
	return position == totals.Position, nil
}

// adoptTail settles what a shard's journal has and the ledger lacks, of a campaign
// that is over: nothing loads it any more.
func (s *Service) adoptTail(ctx context.Context, c *Campaign, id ShardID) error {
	l := &live{}
	l.campaign.Store(c)
	return s.adopt(ctx, newSettling(id, l, s.cfg.Now()))
}

// adopt is adoptTail for a shard that this node may have joined before.
func (s *Service) adopt(ctx context.Context, t *settling) (err error) {
	defer func() {
		c := t.l.campaign.Load()
		if errors.Is(err, ErrGap) {
			s.halts.Store(c.ID, err)
		} else if err == nil {
			s.halts.Delete(c.ID)
		}
	}()
	totals, err := s.ledger.Totals(ctx, t.id)
	if err != nil {
		return err
	}
	end, by, err := s.opener(ctx, t.id)
	if err != nil {
		return err
	}
	if !totals.Position.Before(end) {
		t.enter(totals.Epoch, totals.Position)
		return nil
	}
	if err := s.continues(ctx, t.id, totals.Position, end); err != nil {
		return err
	}
	if end.Epoch != totals.Epoch {
		// The last load was broken off, or was made on another server.
		if totals, err = s.ledger.Fence(ctx, t.id, by); err != nil {
			return err
		}
		// What the engine may still have open is of an epoch that was given up.
		if err := s.engine.Halt(ctx, t.id); err != nil {
			return err
		}
	}
	t.enter(totals.Epoch, totals.Position)
	return s.settleTail(ctx, t)
}

// seeServersEvery is how often the ledger is told which servers are alive.
const seeServersEvery = ServerLife / 5

// serversLoop tells the ledger which servers are alive, from one node of all that
// speak to them.
func (s *Service) serversLoop(ctx context.Context) {
	for s.engine.Shared() && sleep(ctx, seeServersEvery) {
		if s.onPatrol() {
			s.seeServers(ctx)
		}
	}
}

// seeServers tells the ledger which servers of the engine answer, and which are
// gone for certain: at their address another one answers.
func (s *Service) seeServers(ctx context.Context) {
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
		if t := s.settlingOf(id); t != nil {
			fence, _ := t.place()
			s.fencedOff(ctx, t, fence)
		}
	}
}
