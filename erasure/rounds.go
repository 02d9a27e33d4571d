package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// Loop erases users who are to be erased. Every step can be repeated, and is
// saved by compare-and-set: nodes that do the same do no harm.
func (s *Erasures) Loop(ctx context.Context) {
	for asked := true; ; {
		if asked || s.poller.HasFleetLease() {
			if err := s.eraseAll(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("erasing users failed; it is tried again", "err", err)
			}
		}
		t := time.NewTimer(min(s.every, s.rest))
		select {
		case <-t.C:
			asked = false
		case <-s.eraseKick:
			asked = true
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// eraseAll goes on with all erasures that are not done. One that fails does not hold
// the others up.
func (s *Erasures) eraseAll(ctx context.Context) error {
	var errs error
	page := dibs.Page{Limit: dibs.MaxPage}
	for range maxOpenErasures {
		open, err := s.ledger.ErasureList(ctx, true, page)
		if err != nil {
			return errors.Join(errs, err)
		}
		for i := range open.Items {
			e := &open.Items[i]
			// Another node that goes on with it is as good.
			err := s.erase(ctx, e)
			if errors.Is(err, errHeldUnknown) {
				// It is the same for all of them.
				return errors.Join(errs, err)
			}
			if err != nil && !errors.Is(err, dibs.ErrConflict) {
				errs = errors.Join(errs, fmt.Errorf("dibs: the erasure %s, at %s: %w", e.ID, e.Step, err))
			}
		}
		if page.Cursor = open.NextCursor; page.Cursor == "" || ctx.Err() != nil {
			break
		}
	}
	return errs
}

var errHeldUnknown = errors.New("dibs: which campaigns an engine holds is not known")

// heldCampaigns are those of which an engine or its journal knows users.
func (s *Erasures) heldCampaigns(ctx context.Context) (map[uint32]bool, error) {
	// Here is asked before there: what is being loaded is in one of both.
	held := make(map[uint32]bool)
	for _, c := range s.registry.Held() {
		held[c.Number] = true
	}
	shards, err := s.engine.JournalShards(ctx)
	for _, id := range shards {
		held[id.Campaign] = true
	}
	return held, err
}

// erase does a round of an erasure, or as much as is left of it.
func (s *Erasures) erase(ctx context.Context, e *Erasure) error {
	if e.Step == eraseSteps[0] && !e.CleanSince.IsZero() && s.now().Before(e.CleanSince.Add(s.rest)) {
		return nil
	}
	before, looks := e.WaitsFor, e.Step == EraseCheck
	err := s.eraseSteps(ctx, e)
	if err == nil && looks && !slices.Equal(before, e.WaitsFor) {
		// There is something that may be erased now.
		e.again()
		err = s.eraseSteps(ctx, e)
	}
	if err != nil {
		return err
	}
	return s.endRound(ctx, e, before)
}

// eraseSteps does what is left of a round.
func (s *Erasures) eraseSteps(ctx context.Context, e *Erasure) error {
	for e.Step != EraseEnd {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.UpdatedAt = dibs.Ms(s.now())
		if e.Step != EraseLists {
			if err := s.eraseSome(ctx, e); err != nil {
				return err
			}
			continue
		}
		for _, eraser := range s.erasers {
			n, err := eraser.EraseUser(ctx, e.UserID)
			if err != nil {
				return err
			}
			e.Note(EraseLists, n)
		}
		e.Advance()
		if err := s.ledger.SaveErasure(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// eraseSome does a part of a step that is the ledger's. Which campaigns are held is
// asked each time: rounds of many users take long, and one may be held meanwhile, for a
// late payment say.
func (s *Erasures) eraseSome(ctx context.Context, e *Erasure) error {
	var held map[uint32]bool
	if slices.Contains(campaignSteps, e.Step) {
		var err error
		if held, err = s.heldCampaigns(ctx); err != nil {
			return fmt.Errorf("%w: %w", errHeldUnknown, err)
		}
	}
	return s.ledger.EraseSome(ctx, e, held, s.now())
}

// endRound decides what comes after a round: it is done when a later round finds
// nothing any more, so that what was under way meanwhile is found. While it waits
// for the same as before, it is only looked at that: rounds read whole lists.
func (s *Erasures) endRound(ctx context.Context, e *Erasure, waited []string) error {
	now := dibs.Ms(s.now())
	before := e.State
	looks := len(e.WaitsFor) > 0 && e.Changed == 0 && slices.Equal(waited, e.WaitsFor)
	switch {
	case len(e.WaitsFor) > 0:
		e.State, e.CleanSince = ErasureWaiting, time.Time{}
	case e.Changed > 0 || e.CleanSince.IsZero():
		e.State, e.CleanSince = ErasureRunning, now
	default:
		e.State, e.DoneAt = ErasureDone, now
	}
	if e.again(); looks {
		e.Step = EraseCheck
	}
	e.UpdatedAt = now
	if err := s.ledger.SaveErasure(ctx, e); err != nil {
		return err
	}
	switch {
	case e.State == ErasureDone:
		s.log.Info("a user is erased", "erasure", e.ID)
	case e.State == ErasureWaiting && before != ErasureWaiting:
		s.log.Info("an erasure waits", "erasure", e.ID, "waits_for", slices.Clone(e.WaitsFor))
	}
	return nil
}
