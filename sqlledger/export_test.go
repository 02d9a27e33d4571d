package sqlledger

import (
	"context"
	"errors"
	"time"
)

// BeatEvery makes a journal in a server look after its lock more often. It is
// called before Acquire.
func BeatEvery(t *JournalTable, d time.Duration) { t.lock.(*ownerLock).every = d }

// PathOf returns the file of a journal.
func PathOf(t *JournalTable) string { return t.place }

// AssignItem is the statement that gives an item to a claim.
const AssignItem = sqliteAssignItem

// StallPatience is how long a transaction that writes may ask nothing.
const StallPatience = stallPatience

// InTransaction begins a transaction that writes, runs a statement that returns
// one number in it, and leaves it as it is, as a process does that is frozen,
// until end is called.
func InTransaction(ctx context.Context, l *Ledger, statement string) (n int64, end func() error, err error) {
	s, err := l.writers.take(ctx)
	if err != nil {
		return 0, nil, err
	}
	if err = s.control(ctx, l.d.begin); err == nil {
		n, err = number(ctx, s.conn, statement)
	}
	end = func() error {
		s.broken = true
		return l.writers.give(s)
	}
	if err != nil {
		return 0, nil, errors.Join(err, end())
	}
	return n, end, nil
}
