package dibs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FollowerRest is how long the row of an erased follower stays, without being
// one: nodes that have followers in memory read from it that there is one less.
const FollowerRest = 10 * time.Minute

// maxOpenErasures bounds the erasures that a node looks at in one go.
const maxOpenErasures = 100

// Erase begins to erase a user, and returns the erasure under way when there is
// one; true then. *Error of InvalidRequest, or of InvalidState for a user who has
// money and no word on what becomes of it.
func (s *Service) Erase(ctx context.Context, user string, spec ErasureSpec) (ErasureView, bool, error) {
	if !isID(user) {
		return ErasureView{}, false, Invalid(Fault{"/user", badID})
	}
	now := ms(s.cfg.Now())
	e := &Erasure{
		ID: newID("e-"), UserID: user, Pseudonym: PseudonymPrefix + strings.ToLower(rand.Text()), LeaveBalance: spec.LeaveBalance,
		State: ErasureRunning, Step: eraseSteps[0], RequestedAt: now, UpdatedAt: now, Version: 1,
	}
	if !spec.LeaveBalance {
		if err := s.hasNothing(ctx, user); err != nil {
			return ErasureView{}, false, err
		}
	}
	err := s.ledger.InsertErasure(ctx, e)
	known := errors.Is(err, ErrAlreadyExists)
	if known {
		if e, err = s.ledger.ErasureOf(ctx, user); err == nil && spec.LeaveBalance && !e.LeaveBalance {
			e.LeaveBalance = true
			err = s.ledger.SaveErasure(ctx, e)
		}
	}
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) {
		err = Unavail(EffectUnknown, err)
	}
	if err != nil {
		return ErasureView{}, false, asUnavailable(err, EffectUnknown)
	}
	kick(s.eraseKick)
	return e.View(), known, nil
}

// hasNothing returns an error that names what a user has on accounts.
func (s *Service) hasNothing(ctx context.Context, user string) error {
	balances, err := s.ledger.Balances(ctx, user)
	if err != nil {
		return asUnavailable(err, EffectNone)
	}
	var has []string
	for _, b := range balances {
		if b.Amount != 0 {
			has = append(has, fmt.Sprintf("%d %s", b.Amount, b.Currency))
		}
	}
	if len(has) == 0 {
		return nil
	}
	return Fail(InvalidState, Textf(
		"the user's account has %s (minor units): pay it out by your own means, then ask again with leave_balance, and it stays on an account of nobody",
		"该用户账户余额 %s（最小货币单位）：请先自行结清，再携带 leave_balance 重试，余额将留在无主账户上", strings.Join(has, ", ")))
}

// Erasure returns an erasure. ErrNotFound.
func (s *Service) Erasure(ctx context.Context, id string) (ErasureView, error) {
	e, err := s.ledger.ErasureByID(ctx, id)
	if err != nil {
		return ErasureView{}, err
	}
	return e.View(), nil
}

// Erasures lists erasures, the newest first.
func (s *Service) Erasures(ctx context.Context, open bool, page Page) (List[Erasure], error) {
	return s.ledger.ErasureList(ctx, open, page)
}

// UserRecord tells what there is about a user.
func (s *Service) UserRecord(ctx context.Context, user string) (UserRecord, error) {
	if !isID(user) {
		return UserRecord{}, Invalid(Fault{"/user", badID})
	}
	r, err := s.ledger.UserRecord(ctx, user)
	if err != nil {
		return UserRecord{}, asUnavailable(err, EffectNone)
	}
	r.Lists = []string{}
	for _, eraser := range s.cfg.Erasers {
		lists, err := eraser.ListsOf(ctx, user)
		if err != nil {
			return UserRecord{}, asUnavailable(err, EffectNone)
		}
		r.Lists = append(r.Lists, lists...)
	}
	e, err := s.ledger.ErasureOf(ctx, user)
	switch {
	case err == nil:
		v := e.View()
		r.Erasure = &v
	case !errors.Is(err, ErrNotFound):
		return UserRecord{}, asUnavailable(err, EffectNone)
	}
	return *r, nil
}

// eraseLoop erases users who are to be erased. Every step can be repeated, and is
// saved by compare-and-set: nodes that do the same do no harm.
func (s *Service) eraseLoop(ctx context.Context) {
	for asked := true; ; {
		if asked || s.onPatrol() {
			if err := s.eraseAll(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("erasing users failed; it is tried again", "err", err)
			}
		}
		t := time.NewTimer(min(s.cfg.EraseEvery, s.cfg.EraseRest))
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

// eraseAll goes on with all erasures that are not done. What one of them cannot
// do does not hold the others up.
func (s *Service) eraseAll(ctx context.Context) error {
	var errs error
	page := Page{Limit: MaxPage}
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
			if err != nil && !errors.Is(err, ErrConflict) {
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
func (s *Service) heldCampaigns(ctx context.Context) (map[uint32]bool, error) {
	// Here is asked before there: what is being loaded is in one of both.
	held := make(map[uint32]bool)
	s.byNumber.Range(func(number, _ any) bool {
		held[number.(uint32)] = true
		return true
	})
	shards, err := s.engine.JournalShards(ctx)
	for _, id := range shards {
		held[id.Campaign] = true
	}
	return held, err
}

// erase does a round of an erasure, or as much as is left of it.
func (s *Service) erase(ctx context.Context, e *Erasure) error {
	if e.Step == eraseSteps[0] && !e.CleanSince.IsZero() && s.cfg.Now().Before(e.CleanSince.Add(s.cfg.EraseRest)) {
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
func (s *Service) eraseSteps(ctx context.Context, e *Erasure) error {
	for e.Step != EraseEnd {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.UpdatedAt = ms(s.cfg.Now())
		if e.Step != EraseLists {
			if err := s.eraseSome(ctx, e); err != nil {
				return err
			}
			continue
		}
		for _, eraser := range s.cfg.Erasers {
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
func (s *Service) eraseSome(ctx context.Context, e *Erasure) error {
	var held map[uint32]bool
	if slices.Contains(campaignSteps, e.Step) {
		var err error
		if held, err = s.heldCampaigns(ctx); err != nil {
			return fmt.Errorf("%w: %w", errHeldUnknown, err)
		}
	}
	return s.ledger.EraseSome(ctx, e, held, s.cfg.Now())
}

// endRound decides what comes after a round: it is done when a later round finds
// nothing any more, so that what was under way meanwhile is found. While it waits
// for the same as before, it is only looked at that: rounds read whole lists.
func (s *Service) endRound(ctx context.Context, e *Erasure, waited []string) error {
	now := ms(s.cfg.Now())
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
