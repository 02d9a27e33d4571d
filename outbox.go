package dibs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// releasesAtOnce is how many releases are sent to an engine at the same time:
// it makes them durable together.
const releasesAtOnce = 256

// sendCommands sends what waits in the outbox. Engines recognise repeats, so
// that nodes that send the same do no harm.
func (s *Service) sendCommands(ctx context.Context) error {
	select {
	case s.sending <- struct{}{}:
		defer func() { <-s.sending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var errs error
	// What cannot be sent to one shard does not hold the others up.
	waits, behind := make(map[ShardID]bool), int64(0)
	defer func() { s.counters.outboxBehind.Store(behind) }()
	for after := int64(0); ; {
		commands, err := s.ledger.Commands(ctx, after, outboxPage)
		if err != nil || len(commands) == 0 {
			return errors.Join(errs, err)
		}
		after = commands[len(commands)-1].ID
		n, err := s.sendPage(ctx, commands, waits)
		behind, errs = behind+n, errors.Join(errs, err)
		if len(commands) < outboxPage || ctx.Err() != nil {
			return errs
		}
	}
}

// sendPage sends commands, but none to a shard that waits for an earlier one,
// and returns how many were not sent.
func (s *Service) sendPage(ctx context.Context, commands []Command, waits map[ShardID]bool) (behind int64, err error) {
	ctx, end := s.begin(ctx, "send commands", slog.Int("dibs.commands", len(commands)))
	defer func() { end(err) }()
	for i := range commands {
		cmd := &commands[i]
		if waits[cmd.Shard] {
			behind++
			continue
		}
		if failed := s.sendCommand(ctx, cmd); failed != nil {
			waits[cmd.Shard] = true
			behind++
			err = errors.Join(err, fmt.Errorf("dibs: a command to shard %s: %w", cmd.Shard, failed))
		}
	}
	return behind, err
}

// sendCommand has a command carried out, and drops it.
func (s *Service) sendCommand(ctx context.Context, cmd *Command) error {
	err := s.carryOut(ctx, cmd)
	if t := s.settlingOf(cmd.Shard); t != nil {
		t.rouse()
	}
	if errors.Is(err, ErrNotOpen) {
		c, readErr := s.ledger.CampaignByNumber(ctx, cmd.Shard.Campaign)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if s.sells(c) {
			// It is being loaded; the load's epoch decides whether it counts.
			return err
		}
		err = nil
	}
	// A stale command was counted by the rebuild that raised the epoch.
	if err != nil && !errors.Is(err, ErrStale) {
		return err
	}
	return s.ledger.DropCommand(ctx, cmd.ID)
}

// carryOut makes the engine do what a command says.
func (s *Service) carryOut(ctx context.Context, cmd *Command) error {
	if len(cmd.Releases) == 0 {
		return s.engine.Adjust(ctx, cmd.Adjust)
	}
	var all sync.WaitGroup
	free := make(chan struct{}, releasesAtOnce)
	failed := make(chan error, 1)
	for _, r := range cmd.Releases {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if err := s.engine.Release(ctx, r); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
