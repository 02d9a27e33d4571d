package sqldb

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// openOwned opens the owned schema, whose process is fenced when fenced says
// so.
func openOwned(t *testing.T, url string, fenced error) *DB {
	t.Helper()
	db, err := Open(t.Context(), url, ownedSchema, Config{
		Explain: faulty, Fenced: func(context.Context, *Session) error { return fenced },
	})
	noError(t, err)
	closeLater(t, db)
	return db
}

// TestLock: one of two has the lock, until it releases it or is closed.
func TestLock(t *testing.T) {
	eachKind(t, func(t *testing.T, url string) {
		one, other := openOwned(t, url, nil), openOwned(t, url, nil)
		for n, want := range []bool{true, false} {
			if taken, err := one.Lock(t.Context(), "lock"); err != nil || taken != want {
				t.Fatalf("call %d: taken %t, %v", n, taken, err)
			}
		}
		if _, err := other.Lock(t.Context(), "lock"); !errors.Is(err, ErrHeld) {
			t.Errorf("the other one: %v", err)
		}
		noError(t, one.Unlock())
		noError(t, one.Unlock())
		if taken, err := other.Lock(t.Context(), "lock"); err != nil || !taken {
			t.Errorf("the other one afterwards: taken %t, %v", taken, err)
		}
		noError(t, other.Close())
		if taken, err := one.Lock(t.Context(), "lock"); err != nil || !taken {
			t.Errorf("when the other one is closed: taken %t, %v", taken, err)
		}
	})
}

// holder is the number of the connection that has the lock, as a DB reads it.
func holder(t *testing.T, db *DB) (n int64) {
	t.Helper()
	err := db.Read(t.Context(), "read the holder", func(s *Session) (err error) {
		n, err = s.server.locks.holderOf(t.Context(), s.conn, ownedSchema.Name)
		return err
	})
	noError(t, err)
	return n
}

// endConnection ends a connection of the server.
func endConnection(t *testing.T, s *servers.Server, db *DB, n int64) {
	t.Helper()
	noError(t, s.Exec("", fmt.Sprintf(db.server.locks.end, n)))
}

// TestServerLockKept: a holder that has nothing to write takes a lost lock again all
// the same.
func TestServerLockKept(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server, url string) {
		db, other := openOwned(t, url, nil), openOwned(t, url, nil)
		db.lock.(*serverLock).every = 10 * time.Millisecond
		_, err := db.Lock(t.Context(), "lock")
		noError(t, err)
		before := holder(t, other)
		endConnection(t, s, db, before)
		for deadline, after := time.Now().Add(time.Minute), before; after == before || after == 0; after = holder(t, other) {
			if time.Now().After(deadline) {
				t.Fatal("the lock was not taken again")
			}
		}
		if _, err := other.Lock(t.Context(), "lock"); !errors.Is(err, ErrHeld) {
			t.Errorf("the other one: %v", err)
		}
	})
}

// TestLockLost: a holder whose connection was lost writes only when it has the
// lock again, and not at all when it was fenced meanwhile.
func TestLockLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server, url string) {
		openTest(t, url, Config{})
		fenced := errors.New("fenced")
		for name, c := range map[string]struct {
			fenced, want error
			taken        bool
		}{"alone": {}, "fenced": {fenced: fenced, want: fenced}, "taken": {want: errLockTaken, taken: true}} {
			t.Run(name, func(t *testing.T) {
				db, other := openOwned(t, url, c.fenced), openOwned(t, url, nil)
				_, err := db.Lock(t.Context(), "lock")
				noError(t, err)
				endConnection(t, s, db, holder(t, other))
				if c.taken {
					for taken := false; !taken; taken, err = other.Lock(t.Context(), "lock") {
						if err != nil && !errors.Is(err, ErrHeld) {
							t.Fatal(err)
						}
					}
				}
				if err := insert(t, db, name, 1); !errors.Is(err, c.want) || c.taken && faultOf(err) != FaultBusy {
					t.Errorf("a write returned %v", err)
				}
			})
		}
	})
}
