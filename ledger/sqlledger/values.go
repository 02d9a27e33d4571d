package sqlledger

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// Times are kept in milliseconds since 1970, in UTC; where there may be none, 0
// stands for no time.

// fromMS is the time of a column.
func fromMS(v int64) time.Time { return time.UnixMilli(v).UTC() }

// fromOptionalMS is fromMS, with the zero time for 0.
func fromOptionalMS(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return fromMS(v)
}

// timeColumn scans a column into a time.
type timeColumn struct {
	into *time.Time
	from func(int64) time.Time
}

// ms is fromMS for a scan.
func ms(into *time.Time) timeColumn { return timeColumn{into, fromMS} }

// optionalMS is fromOptionalMS for a scan.
func optionalMS(into *time.Time) timeColumn { return timeColumn{into, fromOptionalMS} }

// Scan implements sql.Scanner.
func (c timeColumn) Scan(column any) error {
	var v sql.NullInt64
	err := v.Scan(column)
	if err == nil && !v.Valid {
		err = errors.New("a time is NULL")
	}
	*c.into = c.from(v.Int64)
	return err
}

// toOptionalMS is the column of a time, 0 for the zero time.
func toOptionalMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// flag is how a column keeps a bool.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// anys are values as arguments.
func anys[T any](values []T) []any {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return args
}

// splitMoney returns the columns of an amount: an empty currency for none.
func splitMoney(m *dibs.Money) (amount int64, currency string) {
	if m == nil {
		return 0, ""
	}
	return m.Amount, m.Currency
}

// joinMoney is the amount of two columns.
func joinMoney(amount int64, currency string) *dibs.Money {
	if currency == "" {
		return nil
	}
	return &dibs.Money{Amount: amount, Currency: currency}
}

// maxText bounds, in bytes, the texts that storable shortens.
const maxText = 1000

// storable makes a text one that every database can store: valid UTF-8 without
// NUL, and not too long. Texts that other servers or users wrote come here
// before they are stored for people to read.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

// limitOf returns the page's size within the contract's bounds. A limit of 0 is
// the default, and one that is too large is cut.
func limitOf(p dibs.Page) int {
	if p.Limit <= 0 {
		return dibs.DefaultPage
	}
	return min(p.Limit, dibs.MaxPage)
}

// cursorText writes the key of a page's last row as the cursor of the next
// page. Cursors are opaque to callers: JSON in base64, without padding, so that
// it fits into an address.
func cursorText(key any) (string, error) {
	b, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// readCursor reads what cursorText wrote into key, and returns false for the
// first page. A cursor comes from outside and may be forged: its values are
// arguments of statements, never parts of them, and may be out of range. The
// error for one that cannot be read is an *Error of InvalidRequest that names
// /cursor.
func readCursor(cursor string, key any) (bool, error) {
	if cursor == "" {
		return false, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(b, key)
	}
	if err != nil {
		return false, dibs.Invalid(dibs.Fault{Field: "/cursor", Problem: dibs.Text{
			EN: "is not a cursor that this list gave out", ZH: "不是本列表返回的游标",
		}})
	}
	return true, nil
}

// cut makes a page of rows, which were read with one more than the limit. The
// additional row says that the list goes on.
func cut[T, K any](rows []T, limit int, key func(*T) K) (dibs.List[T], error) {
	if len(rows) <= limit {
		return dibs.List[T]{Items: rows}, nil
	}
	next, err := cursorText(key(&rows[limit-1]))
	return dibs.List[T]{Items: rows[:limit], NextCursor: next}, err
}

// query is a statement with its arguments.
type query struct {
	statement string
	args      []any
}

// and adds to q, which ends in conditions, another one with its arguments.
func (q *query) and(condition string, args ...any) {
	q.statement += " AND " + condition
	q.args = append(q.args, args...)
}

// then adds the end of the statement to q, and returns the whole query.
func (q *query) then(end string) query {
	q.statement += end
	return *q
}

// readPage reads a page. key is where a row stands in the list; rows, which is called
// once, returns the query of those behind a key, without its limit, the last argument.
// The first page is behind begin. It runs in a call of its own.
func readPage[T, K any](
	ctx context.Context, db *sqldb.DB, op string, page dibs.Page, begin K, rows func(after K) query, scan func(*sql.Rows, *T) error, key func(*T) K,
) (dibs.List[T], error) {
	if _, err := readCursor(page.Cursor, &begin); err != nil {
		return dibs.List[T]{}, err
	}
	q, limit := rows(begin), limitOf(page)
	found, err := sqldb.ReadList(ctx, db, op, q.statement, append(q.args, limit+1), scan)
	if err != nil {
		return dibs.List[T]{}, err
	}
	return cut(found, limit, key)
}
