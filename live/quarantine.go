package live

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// MaxListed bounds the entries in quarantine that a node keeps in mind. While there are
// more, it asks the ledger.
const MaxListed = 1000

// maxQuarantined is how many entries of a shard may be in quarantine. One is an
// accident; so many are a ledger that is at odds with itself, and settling on
// would spread it.
const maxQuarantined = 100

// errTooMany stops a shard whose entries the ledger refuses one after the other.
var errTooMany = fmt.Errorf("dibs: %d entries of a shard are in quarantine: nothing more of it is settled until dibs verify --repair, or somebody, has put the ledger right", maxQuarantined)

// Quarantine is what could not be settled, as the ledger had it when it was read
// last. It is read anew by the node's tidying, and after each change by this node. All
// methods are safe for concurrent use; readers take no lock.
type Quarantine struct {
	ledger Ledger
	log    *slog.Logger
	// reading is held while it is read, so that what was read later is kept.
	reading wait.Lock
	known   atomic.Pointer[contents]
}

// contents is what was read of the quarantine. It is never changed.
type contents struct {
	// entries are the first MaxListed in the order of their places.
	entries []Quarantined
	// counts has every shard with an entry, those included that entries has no room for.
	counts map[dibs.ShardID]int64
}

// ReadQuarantine reads what is in quarantine, by this node or by others.
func (s *Quarantine) ReadQuarantine(ctx context.Context) {
	// The later reading is kept.
	s.reading.Lock()
	defer s.reading.Unlock()
	found, err := s.read(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the quarantine could not be read", "err", err)
		}
		return
	}
	s.known.Store(found)
}

// read asks the ledger, which counts only what does not fit into the list.
func (s *Quarantine) read(ctx context.Context) (*contents, error) {
	entries, err := s.ledger.Quarantined(ctx, QuarantineFilter{}, MaxListed)
	if err != nil {
		return nil, err
	}
	a := &contents{entries: entries, counts: map[dibs.ShardID]int64{}}
	if len(entries) == MaxListed {
		a.counts, err = s.ledger.CountQuarantined(ctx)
		return a, err
	}
	for i := range entries {
		a.counts[entries[i].Shard]++
	}
	return a, nil
}

// lastRead is what was read last.
func (s *Quarantine) lastRead() *contents {
	if a := s.known.Load(); a != nil {
		return a
	}
	return &contents{}
}

// Count is how many entries were in quarantine when it was read last.
func (s *Quarantine) Count() (n int64) {
	for _, of := range s.lastRead().counts {
		n += of
	}
	return n
}

// CountOf is how many of them were a campaign's.
func (s *Quarantine) CountOf(campaign uint32) (n int64) {
	for shard, of := range s.lastRead().counts {
		if shard.Campaign == campaign {
			n += of
		}
	}
	return n
}

// Find returns the entries that a filter names. It asks the ledger only when there are
// more than a node keeps in mind, and returns the ledger's errors.
func (s *Quarantine) Find(ctx context.Context, f QuarantineFilter) ([]Quarantined, error) {
	a := s.lastRead()
	if len(a.entries) == MaxListed {
		return s.InLedger(ctx, f)
	}
	var found []Quarantined
	for i := range a.entries {
		if f.names(&a.entries[i]) {
			found = append(found, a.entries[i])
		}
	}
	return found, nil
}

// InLedger is Find by the ledger alone. It returns at most maxQuarantined entries for
// each shard.
func (s *Quarantine) InLedger(ctx context.Context, f QuarantineFilter) ([]Quarantined, error) {
	var found []Quarantined
	for {
		page, err := s.ledger.Quarantined(ctx, f, MaxListed)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		if len(page) < MaxListed {
			return found, nil
		}
		f.After = page[len(page)-1].Place()
	}
}

// GrantAside looks for a grant in quarantine; false when none is there. Its errors are
// Find's.
func (s *Quarantine) GrantAside(ctx context.Context, f QuarantineFilter) (dibs.Grant, bool, error) {
	grants, err := s.GrantsAside(ctx, f)
	if err != nil || len(grants) == 0 {
		return dibs.Grant{}, false, err
	}
	return grants[0], true, nil
}

// GrantsAside are the grants in quarantine that a filter names. Its errors are Find's.
func (s *Quarantine) GrantsAside(ctx context.Context, f QuarantineFilter) ([]dibs.Grant, error) {
	found, err := s.Find(ctx, f)
	var grants []dibs.Grant
	for i := range found {
		if q := &found[i]; q.Entry.Kind == dibs.EntryGrant {
			grants = append(grants, q.Grant())
		}
	}
	return grants, err
}

// IsAside reports whether the grant at a place is in quarantine. Its errors are Find's.
func (s *Quarantine) IsAside(ctx context.Context, p dibs.Position) (bool, error) {
	_, found, err := s.GrantAside(ctx, QuarantineFilter{At: p})
	return found, err
}
