package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs/lock"
)

// TestSessionKilled ends the database's sessions, as an administrator does: the
// lock is free at once, and its holder is told.
func TestSessionKilled(t *testing.T) {
	eachKind(t, []string{mariadb, postgres}, func(t *testing.T, k *kind) {
		ctx := patient(t)
		mine := k.open(t, 0)
		h, err := mine.Lock(ctx, "session", lock.Options{})
		must(t, err)
		k.endSessions(ctx, t)
		next, err := k.open(t, 0).Lock(ctx, "session", lock.Options{})
		must(t, err)
		if next.Fence() <= h.Fence() {
			t.Errorf("the fence %d comes after %d", next.Fence(), h.Fence())
		}
		select {
		case <-h.Context().Done():
		case <-ctx.Done():
			t.Fatal("the holder is not told")
		}
		if !errors.Is(context.Cause(h.Context()), lock.ErrLost) {
			t.Errorf("the holder is told %v", context.Cause(h.Context()))
		}
		if err := h.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("what was lost is given back: %v", err)
		}
		must(t, next.Unlock(ctx))
	})
}

// endSessions ends all sessions of the database at hand.
func (k *kind) endSessions(ctx context.Context, t *testing.T) {
	t.Helper()
	list, end := "SELECT id FROM information_schema.processlist WHERE db = '%s'", "KILL %d"
	if k.name == postgres {
		list, end = "SELECT pid FROM pg_stat_activity WHERE datname = '%s'", "SELECT pg_terminate_backend(%d)"
	}
	db, err := k.server.Open("")
	must(t, err)
	defer func() { must(t, db.Close()) }()
	rows, err := db.QueryContext(ctx, fmt.Sprintf(list, k.database))
	must(t, err)
	var sessions []int64
	for rows.Next() {
		var id int64
		must(t, rows.Scan(&id))
		sessions = append(sessions, id)
	}
	must(t, errors.Join(rows.Err(), rows.Close()))
	if len(sessions) == 0 {
		t.Fatal("nobody has a session")
	}
	for _, id := range sessions {
		_, err := db.ExecContext(ctx, fmt.Sprintf(end, id))
		must(t, err)
	}
}

// TestDatabasesAreApart takes one name in two databases of a server: they are
// two locks, as their fences are.
func TestDatabasesAreApart(t *testing.T) {
	for _, name := range []string{mariadb, postgres} {
		t.Run(name, func(t *testing.T) {
			ctx := patient(t)
			var fences []uint64
			for range 2 {
				h, err := kindOf(t, name).open(t, 0).Lock(ctx, "apart", lock.Options{Wait: lock.NoWait})
				must(t, err)
				defer func() { must(t, h.Unlock(ctx)) }()
				fences = append(fences, h.Fence())
			}
			if fences[0] != 1 || fences[1] != 1 {
				t.Errorf("they begin with the fences %d", fences)
			}
		})
	}
}
