package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/dibs-dev/dibs"
)

// BeatEvery makes a journal in a server look after its lock more often. It is
// called before Acquire.
func BeatEvery(t *JournalTable, d time.Duration) { t.lock.(*ownerLock).every = d }

// Holder is the number of the connection that has a journal's lock in its server,
// as the journal reads it; 0 for none.
func Holder(ctx context.Context, t *JournalTable) (n int64, err error) {
	s, err := t.readers.take(ctx)
	if err != nil {
		return 0, err
	}
	n, err = number(ctx, s.conn, fmt.Sprintf(t.d.server.locks.holder, journalLock))
	return n, errors.Join(err, t.readers.give(s))
}

// FeedRows is how many rows the feed has after one.
func FeedRows(ctx context.Context, l *Ledger, after int64) (n int64, err error) {
	err = l.read(ctx, "count the feed", func(s *session) error {
		return s.row(ctx, "SELECT COUNT(*) FROM feed WHERE id > ?", []any{after}, &n)
	})
	return n, err
}

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

// Plan is what a ledger's database says about how it looks for orders.
func Plan(t testing.TB, l *Ledger, explain string, f dibs.OrderFilter) string {
	t.Helper()
	statement, args := l.d.orders(f, lastPlace(f))
	if f.UserID == "" && f.Campaigns != nil {
		statement, args = l.d.campaignOrders(f, f.Campaigns[0], lastPlace(f))
	}
	return planOf(t, l, explain+statement, append(args, dibs.MaxPage+1))
}

// PlanOfItems is what a ledger's database says about how it looks for the items
// of a page of claims, those after a place.
func PlanOfItems(t testing.TB, l *Ledger, explain string, after dibs.Position) string {
	t.Helper()
	var args []any
	for range dibs.MaxPage + 1 {
		after.Seq++
		args = append(args, after.Campaign, after.Shard, after.Epoch, after.Seq)
	}
	return planOf(t, l, explain+l.d.itemsOfQuery(dibs.MaxPage+1), args)
}

// PlanOfAudit is the same of how all claims of a campaign are compared with their
// items.
func PlanOfAudit(t testing.TB, l *Ledger, explain string, campaign uint32) string {
	t.Helper()
	return planOf(t, l, explain+l.d.claimsItemsQuery(), []any{-1, campaign, -1, maxBad})
}

func planOf(t testing.TB, l *Ledger, statement string, args []any) string {
	t.Helper()
	var plan strings.Builder
	// Written out, for a plan of these values and no others.
	if err := l.read(t.Context(), "explain", func(s *session) error {
		rows, err := s.conn.QueryContext(t.Context(), l.d.bound(statement), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(sql.NullString)
			}
			if err := rows.Scan(values...); err != nil {
				return err
			}
			for _, v := range values {
				plan.WriteString(" " + v.(*sql.NullString).String)
			}
			plan.WriteString(" ;")
		}
		return rows.Err()
	}); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// Analyze has a ledger's database count the rows of tables.
func Analyze(t testing.TB, l *Ledger, tables ...string) {
	t.Helper()
	for _, table := range tables {
		statement := "ANALYZE " + table
		if l.d.goose == goose.DialectMySQL {
			statement = "ANALYZE TABLE " + table
		}
		if err := l.withWriter(t, statement); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *Ledger) withWriter(t testing.TB, statement string) error {
	s, err := l.writers.take(t.Context())
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(t.Context(), statement)
	return errors.Join(err, l.writers.give(s))
}

// Connections is how many connections a ledger has for reading and for writing.
func Connections(l *Ledger) (n int) {
	return l.readers.db.Stats().OpenConnections + l.writers.db.Stats().OpenConnections
}
