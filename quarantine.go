package dibs

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// maxQuarantined is how many entries of a shard may be in quarantine. One is an
// accident; so many are a ledger that is at odds with itself, and settling on
// would spread it.
const maxQuarantined = 100

// errTooMany stops a shard whose entries the ledger refuses one after the other.
var errTooMany = fmt.Errorf("dibs: %d entries of a shard are in quarantine: nothing more of it is settled until dibs verify --repair, or somebody, has put the ledger right", maxQuarantined)

// isolate settles a batch that the ledger refused up to the entry that is to
// blame, and sets that one aside. It returns how many entries that were; the
// rest is settled as usual.
func (s *Service) isolate(ctx context.Context, b Batch, t *settling) (int, error) {
	done := 0
	for len(b.Entries) > 1 {
		half := b.upTo(len(b.Entries) / 2)
		switch err := s.settleBatches(ctx, []Batch{half}, []*settling{t}); {
		case err == nil:
			done += len(half.Entries)
			b.From, b.Entries = half.To, b.Entries[len(half.Entries):]
		case errors.Is(err, ErrPoison):
			b = half
		default:
			return done, err
		}
	}
	// It was refused in company; alone it may be another matter.
	err := s.settleBatches(ctx, []Batch{b}, []*settling{t})
	if errors.Is(err, ErrPoison) {
		err = s.quarantine(ctx, b, t, err)
	}
	if err != nil {
		return done, err
	}
	return done + 1, nil
}

// upTo is the batch's first n entries.
func (b *Batch) upTo(n int) Batch {
	part := *b
	part.Entries = b.Entries[:n]
	part.To = part.Entries[n-1].Cursor
	return part
}

// quarantine sets a batch's only entry aside.
func (s *Service) quarantine(ctx context.Context, b Batch, t *settling, cause error) error {
	before, err := s.ledger.Quarantined(ctx, t.id.Campaign, maxListed)
	if err != nil {
		return err
	}
	before = slices.DeleteFunc(before, func(q Quarantined) bool { return q.Shard != t.id })
	if len(before) >= maxQuarantined {
		t.failed(errTooMany)
		return fmt.Errorf("shard %s: %w: %w", t.id, errTooMany, cause)
	}
	if err := s.ledger.Quarantine(ctx, b, cause.Error()); err != nil {
		return s.settleFailed(ctx, []Batch{b}, []*settling{t}, errors.Join(err, cause))
	}
	e := &b.Entries[0]
	// Once, by whoever set it aside: readiness and metrics go on saying it.
	s.log.Error("a journal entry is in quarantine: the ledger cannot take it", "campaign", b.Campaign.ID,
		"position", Position{ShardID: t.id, Cursor: e.Cursor}.String(), "user", e.UserID, "quantity", e.Quantity, "items", e.Items, "err", cause)
	s.readQuarantine(ctx)
	t.moveTo(b.Fence, b.To)
	s.tellSettled(ctx, t)
	// What stands behind it has waited long enough.
	kick(s.settleKick)
	return nil
}

// maxListed bounds the entries in quarantine that a node keeps in mind.
const maxListed = 1000

// readQuarantine reads what is in quarantine, by this node or by others.
func (s *Service) readQuarantine(ctx context.Context) {
	// What was read later is kept.
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	found, err := s.ledger.Quarantined(ctx, 0, maxListed)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the quarantine could not be read", "err", err)
		}
		return
	}
	s.inQuarantine.Store(&found)
}

// quarantined returns what was in quarantine when it was read last.
func (s *Service) quarantined() []Quarantined {
	if found := s.inQuarantine.Load(); found != nil {
		return *found
	}
	return nil
}

// grantAside looks for a grant in quarantine.
func (s *Service) grantAside(matches func(q *Quarantined) bool) (Grant, bool) {
	found := s.quarantined()
	for i := range found {
		if q := &found[i]; q.Entry.Kind == EntryGrant && matches(q) {
			return q.grant(), true
		}
	}
	return Grant{}, false
}

// grantsAside are a user's grants in quarantine.
func (s *Service) grantsAside(user string) []Grant {
	var grants []Grant
	found := s.quarantined()
	for i := range found {
		if q := &found[i]; q.Entry.Kind == EntryGrant && q.Entry.UserID == user {
			grants = append(grants, q.grant())
		}
	}
	return grants
}

// grant is what an engine kept of a grant in quarantine.
func (q *Quarantined) grant() Grant {
	return Grant{
		Position: Position{ShardID: q.Shard, Cursor: q.Entry.Cursor}, UserID: q.Entry.UserID, Quantity: q.Entry.Quantity,
		Items: q.Items, At: q.Entry.At, PayBy: q.Entry.PayBy,
	}
}

// isAside reports whether the grant at a place is in quarantine.
func (s *Service) isAside(p Position) bool {
	_, found := s.grantAside(func(q *Quarantined) bool { return q.Shard == p.ShardID && q.Entry.Cursor == p.Cursor })
	return found
}
