package live

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// maxListed bounds the entries in quarantine that a node keeps in mind.
const MaxListed = 1000

// Quarantine is what could not be settled, as the ledger had it when it was read
// last. It is read anew by the node's tidying, and after each change by this node.
type Quarantine struct {
	ledger Ledger
	log    *slog.Logger
	// asideMu is held while it is read, so that what was read later is kept.
	asideMu      wait.Lock
	inQuarantine atomic.Pointer[[]dibs.Quarantined]
}

// ReadQuarantine reads what is in quarantine, by this node or by others.
func (s *Quarantine) ReadQuarantine(ctx context.Context) {
	// What was read later is kept.
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	found, err := s.ledger.Quarantined(ctx, 0, MaxListed)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the quarantine could not be read", "err", err)
		}
		return
	}
	s.inQuarantine.Store(&found)
}

// Quarantined returns what was in quarantine when it was read last.
func (s *Quarantine) Quarantined() []dibs.Quarantined {
	if found := s.inQuarantine.Load(); found != nil {
		return *found
	}
	return nil
}

// Count is how many entries were in quarantine when it was read last.
func (s *Quarantine) Count() int { return len(s.Quarantined()) }

// GrantAside looks for a grant in quarantine.
func (s *Quarantine) GrantAside(matches func(q *dibs.Quarantined) bool) (dibs.Grant, bool) {
	found := s.Quarantined()
	for i := range found {
		if q := &found[i]; q.Entry.Kind == dibs.EntryGrant && matches(q) {
			return q.Grant(), true
		}
	}
	return dibs.Grant{}, false
}

// GrantsAside are a user's grants in quarantine.
func (s *Quarantine) GrantsAside(user string) []dibs.Grant {
	var grants []dibs.Grant
	found := s.Quarantined()
	for i := range found {
		if q := &found[i]; q.Entry.Kind == dibs.EntryGrant && q.Entry.UserID == user {
			grants = append(grants, q.Grant())
		}
	}
	return grants
}

// IsAside reports whether the grant at a place is in quarantine.
func (s *Quarantine) IsAside(p dibs.Position) bool {
	_, found := s.GrantAside(func(q *dibs.Quarantined) bool { return q.Shard == p.ShardID && q.Entry.Cursor == p.Cursor })
	return found
}
