package enginetest_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
	"github.com/dibs-dev/dibs/engine/memengine"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// embeddedState opens embedded engines on a journal file.
type embeddedState struct {
	tb   testing.TB
	path string
	now  func() time.Time
	eng  *memengine.Engine
	last *mortalStore
}

// mortalStore is a journal that a test can take away from its engine.
type mortalStore struct {
	dibs.JournalStore
	mu   sync.Mutex
	dead bool
}

// Append stores nothing once the process is dead.
func (s *mortalStore) Append(ctx context.Context, generation int64, rows []dibs.JournalRow) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return dibs.ErrFenced
	}
	return s.JournalStore.Append(ctx, generation, rows)
}

// Close closes the store once, whoever comes first.
func (s *mortalStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil
	}
	s.dead = true
	return s.JournalStore.Close()
}

func (s *embeddedState) Open(ctx context.Context) (dibs.Engine, error) {
	table, err := sqlledger.OpenSQLiteJournal(ctx, s.path, sqlledger.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	s.last = &mortalStore{JournalStore: table}
	s.eng, err = memengine.Open(ctx, memengine.Config{Store: s.last, Owner: "contract", Now: s.now})
	return s.eng, err
}

// Kill takes the journal, and its lease, from the engine, which then loses all
// that it has not committed.
func (s *embeddedState) Kill(ctx context.Context) error {
	if err := s.last.Close(); err != nil {
		return err
	}
	// Only to end its goroutines: it cannot reach the journal any more.
	if err := s.eng.Close(ctx); err != nil {
		s.tb.Logf("the killed engine closes with: %v", err)
	}
	return nil
}

// TestEmbedded runs the suite on the embedded engine with its SQLite journal.
func TestEmbedded(t *testing.T) {
	enginetest.Run(t, enginetest.Factory{New: func(tb testing.TB, now func() time.Time) enginetest.State {
		return &embeddedState{tb: tb, path: filepath.Join(tb.TempDir(), "journal.db"), now: now}
	}})
}
