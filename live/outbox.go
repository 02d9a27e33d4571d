package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
)

// OutboxPage is how many commands are read at a time.
const OutboxPage = 100

// Outbox carries the ledger's commands to the engine. Any goroutine may call Send; the
// rounds run one after the other.
type Outbox struct {
	shared
	loader  *Loader
	trouble *trouble.Log

	OutboxKick chan struct{}
	// sending is held while commands are sent.
	sending chan struct{}

	errors atomic.Int64
	// behind is how many commands could not be sent the last time.
	behind atomic.Int64
}

// loop carries the ledger's commands to the engine.
func (s *Outbox) loop(ctx context.Context) {
	for {
		switch err := s.Send(ctx); {
		case err == nil:
			s.trouble.Over("commands", "commands reach the engine again")
		case ctx.Err() == nil:
			s.errors.Add(1)
			s.trouble.Is("commands", "sending commands to the engine failed", err)
		}
		if !wait.SleepOr(ctx, settleTick, s.OutboxKick) {
			return
		}
	}
}

// releasesAtOnce is how many releases are sent to an engine at the same time:
// it makes them durable together.
const releasesAtOnce = 256

// Send sends what waits in the outbox. Engines recognise repeats, so
// that nodes that send the same do no harm.
func (s *Outbox) Send(ctx context.Context) error {
	select {
	case s.sending <- struct{}{}:
		defer func() { <-s.sending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var errs error
	// A command that cannot be sent to one shard does not hold the others up.
	waits, behind := make(map[dibs.ShardID]bool), int64(0)
	defer func() { s.behind.Store(behind) }()
	for after := int64(0); ; {
		commands, err := s.ledger.Commands(ctx, after, OutboxPage)
		if err != nil || len(commands) == 0 {
			return errors.Join(errs, err)
		}
		after = commands[len(commands)-1].ID
		n, err := s.sendPage(ctx, commands, waits)
		behind, errs = behind+n, errors.Join(errs, err)
		if len(commands) < OutboxPage || ctx.Err() != nil {
			return errs
		}
	}
}

// sendPage sends commands, but none to a shard that waits for an earlier one,
// and returns how many were not sent.
func (s *Outbox) sendPage(ctx context.Context, commands []Command, waits map[dibs.ShardID]bool) (behind int64, err error) {
	ctx, end := begin(ctx, s.tracer, "send commands", slog.Int("dibs.commands", len(commands)))
	defer func() { end(err) }()
	var sent []Command
	for i := range commands {
		cmd := &commands[i]
		if waits[cmd.Shard] {
			behind++
			continue
		}
		carried, failed := s.sendCommand(ctx, cmd)
		if failed != nil {
			waits[cmd.Shard] = true
			behind++
			err = errors.Join(err, fmt.Errorf("dibs: a command to shard %s: %w", cmd.Shard, failed))
		}
		if carried {
			sent = append(sent, *cmd)
		}
	}
	// Dropping them waits for what the ledger writes just now. None of those that bring units
	// to users who wait should wait with them.
	if len(sent) > 0 {
		if failed := s.ledger.DropCommands(ctx, sent); failed != nil {
			behind += int64(len(sent))
			err = errors.Join(err, fmt.Errorf("dibs: dropping %d commands: %w", len(sent), failed))
		}
	}
	return behind, err
}

// sendCommand has a command carried out, unless no engine needs it: then it drops the
// command. carried says that the caller is to drop it.
func (s *Outbox) sendCommand(ctx context.Context, cmd *Command) (carried bool, err error) {
	if cmd.Epoch() == 0 {
		// No engine has opened the shard: its first load counts what the command says. None is asked, since one that
		// is asked about a draft keeps the shard under the product whose limit the draft shares at that moment.
		return false, s.dropUncarried(ctx, cmd)
	}
	err = s.carryOut(ctx, cmd)
	if t := s.registry.Shard(cmd.Shard); t != nil {
		// The engine need not tell this node of its own changes.
		t.l.changes.Add(1)
		t.Wake()
	}
	if errors.Is(err, dibs.ErrGap) {
		// The engine has other items than the ledger, which went back in time. It would
		// give users items by numbers that are other ones' in the ledger.
		return false, s.loader.loadAgain(ctx, cmd.Shard, err)
	}
	if errors.Is(err, dibs.ErrNotOpen) || errors.Is(err, ErrOtherDeployment) {
		c, readErr := s.ledger.CampaignByNumber(ctx, cmd.Shard.Campaign)
		if readErr != nil {
			return false, errors.Join(err, readErr)
		}
		// Operators know it by this name, and may have to give the shard up.
		defer func() { err = of(c, err) }()
		if s.registry.Sells(c) || !errors.Is(err, dibs.ErrNotOpen) {
			// It is being loaded; the load's epoch decides whether it counts. Or it is on a
			// deployment that this node's settings do not name, and another node's may.
			return false, err
		}
		counted, recallErr := s.loader.recallCounted(ctx, c, cmd.Shard)
		if recallErr != nil {
			return false, errors.Join(err, recallErr)
		}
		if !counted {
			return false, s.dropUncarried(ctx, cmd)
		}
		err = s.carryOut(ctx, cmd)
	}
	// A stale command was counted by the rebuild that raised the epoch.
	if err != nil && !errors.Is(err, dibs.ErrStale) {
		return false, err
	}
	return true, nil
}

// dropUncarried drops a command to a shard that is over and in no engine. Another
// node may be loading the shard all the same, for a late payment or since its clock
// is another one, by what the ledger had before the command was written. The lease
// tells of most such loads; the raised epoch has every other one made again.
func (s *Outbox) dropUncarried(ctx context.Context, cmd *Command) error {
	waiting, err := s.ledger.Commands(ctx, cmd.ID-1, 1)
	if err != nil || len(waiting) == 0 || waiting[0].ID != cmd.ID {
		// It was dropped with one before it.
		return err
	}
	totals, err := s.ledger.Totals(ctx, cmd.Shard)
	if err != nil {
		return err
	}
	if totals.Epoch == 0 || cmd.Epoch() < totals.Epoch {
		// No load was made yet, or one that counted it was.
		return s.ledger.DropCommands(ctx, []Command{*cmd})
	}
	// It may have been opened, and all of it settled, since it was found absent. Asked
	// after the totals, the engine tells; what is opened later moves the position or
	// meets the fence.
	if err := s.carryOut(ctx, cmd); err == nil || errors.Is(err, dibs.ErrStale) {
		return s.ledger.DropCommands(ctx, []Command{*cmd})
	} else if !errors.Is(err, dibs.ErrNotOpen) {
		return err
	}
	switch held, err := s.engine.Lease(ctx, cmd.Shard, dibs.Cursor{}); {
	case err != nil:
		return err
	case !held:
		return dibs.Unavail(dibs.EffectNone, dibs.ErrNotOpen)
	}
	_, by, err := s.loader.opener(ctx, cmd.Shard)
	if err != nil {
		return err
	}
	if _, err = s.ledger.Fence(ctx, cmd.Shard, by, totals); errors.Is(err, dibs.ErrPositionMoved) {
		return dibs.Unavail(dibs.EffectNone, dibs.ErrNotOpen)
	}
	return err
}

// carryOut makes the engine do what a command says.
func (s *Outbox) carryOut(ctx context.Context, cmd *Command) error {
	if len(cmd.Releases) == 0 {
		return s.engine.Adjust(ctx, cmd.Adjust)
	}
	var all errgroup.Group
	all.SetLimit(releasesAtOnce)
	for _, r := range cmd.Releases {
		all.Go(func() error { return s.engine.Release(ctx, r) })
	}
	return all.Wait()
}
