package sqlledger

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/orders"
)

// FeedRows is how many rows the feed has after one.
func FeedRows(ctx context.Context, l *Ledger, after int64) (n int64, err error) {
	err = l.db.Read(ctx, "count the feed", func(s *sqldb.Session) error {
		return s.Row(ctx, "SELECT COUNT(*) FROM feed WHERE id > ?", []any{after}, &n)
	})
	return n, err
}

// PathOf returns the file of a journal.
func PathOf(t *JournalTable) string { return t.db.Place() }

// AssignItem is the statement that gives an item to a claim.
const AssignItem = sqliteAssignItem

// Plan is what a ledger's database says about how it looks for orders.
func Plan(t testing.TB, l *Ledger, explain string, f orders.Filter) string {
	t.Helper()
	q := ordersQuery(l.db.Dialect, f, lastCursor(f))
	if f.UserID == "" && f.Campaigns != nil {
		q = campaignOrdersQuery(l.db.Dialect, f, f.Campaigns[0], lastCursor(f))
	}
	return planOf(t, l, explain+q.statement, append(q.args, dibs.MaxPage+1))
}

// PlanOfItems is what a ledger's database says about how it looks for the items
// of a page of claims, those after a position.
func PlanOfItems(t testing.TB, l *Ledger, explain string, after dibs.Position) string {
	t.Helper()
	var args []any
	for range dibs.MaxPage + 1 {
		after.Seq++
		args = append(args, after.Campaign, after.Shard, after.Epoch, after.Seq)
	}
	return planOf(t, l, explain+formsOf[l.db.Kind].itemsOfQuery(dibs.MaxPage+1), args)
}

// PlanOfAudit is the same of how all claims of a campaign are compared with
// their items.
func PlanOfAudit(t testing.TB, l *Ledger, explain string, campaign uint32) string {
	t.Helper()
	return planOf(t, l, explain+formsOf[l.db.Kind].claimsItemsQuery(), []any{-1, campaign, -1, maxBad})
}

func planOf(t testing.TB, l *Ledger, statement string, args []any) string {
	t.Helper()
	var plan strings.Builder
	if err := l.db.Read(t.Context(), "explain", func(s *sqldb.Session) error {
		return s.Each(t.Context(), statement, args, func(rows *sql.Rows) error {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
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
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// StoredItems are the values of a campaign's items, and the commands in the outbox, as they are stored.
func StoredItems(t testing.TB, l *Ledger, campaign uint32) (values []string, commands string) {
	t.Helper()
	if err := l.db.Read(t.Context(), "read items", func(s *sqldb.Session) (err error) {
		values, err = sqldb.List(t.Context(), s, `SELECT value FROM items WHERE campaign = ? ORDER BY n`, []any{campaign}, sqldb.Scan1[string])
		if err != nil {
			return err
		}
		all, err := sqldb.List(t.Context(), s, `SELECT payload FROM outbox ORDER BY id`, nil, sqldb.Scan1[[]byte])
		for _, payload := range all {
			commands += string(payload)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return values, commands
}
