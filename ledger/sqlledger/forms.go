package sqlledger

import (
	"context"
	"strings"

	"github.com/dibs-dev/dibs/internal/sqldb"
)

// forms are the statements, and parts of them, of which each kind of database
// needs a form of its own. All other statements are written once.
type forms struct {
	// addBalance ends an INSERT of accounts: where the account exists, the
	// balance is added to its own.
	addBalance string
	// keepReference ends an INSERT of references: a claim that has one keeps it.
	keepReference string
	// byClaim follows the table of items where they are looked up by their
	// claims, to make the database use the index for it. Items begin without a
	// claim, and by statistics from that time MariaDB takes the index for
	// useless: it would read all items of a campaign for each claim.
	byClaim string
	// dueAt is the condition of claims whose deadline is not after a time, and
	// byDue their order: what the index of deadlines is made for.
	dueAt, byDue string
	// claims inserts claims. Its fixed arguments are campaign, shard, epoch,
	// status, order type and currency; those of a row are seq, user, quantity,
	// amount, request key, pay_by and created_at.
	claims manyRows
	// items gives free items to claims. Its fixed arguments are campaign, shard
	// and epoch; those of a row are the item's number and the claim's seq.
	items manyRows
	// itemRows is the most items that one INSERT writes.
	itemRows int
	// seqs is the condition for claims of one epoch of a shard, by the names of
	// the table and of the columns of their positions. Its arguments are
	// campaign, shard, epoch and the array of seqs. Nil for a list.
	seqs func(table, epoch, seq string) string
	// lockSeqs is the statement that reads some columns of such claims and
	// locks them. Nil for a list.
	lockSeqs func(columns string) string
}

// manyRows is a statement that writes many rows.
type manyRows struct {
	// most is the most rows of one statement.
	most int
	// anyCount says that one text does for any number of rows. Without it few
	// numbers are used, so that few texts are prepared.
	anyCount bool
	// text is the statement for n rows.
	text func(n int) string
	// arguments appends the statement's arguments to dst: the fixed ones in
	// head, and width for each row.
	arguments func(dst, head, rows []any, width int) []any
}

// take is how many of left rows the next statement writes.
func (m *manyRows) take(left int) int {
	if m.anyCount {
		return min(left, m.most)
	}
	return sqldb.Chunk(left, m.most)
}

const (
	// addToExcluded is addBalance in the words of SQLite and PostgreSQL.
	addToExcluded = " ON CONFLICT (kind, owner, currency) DO UPDATE SET balance = accounts.balance + excluded.balance"
	// keepRow is keepReference in the words of SQLite and PostgreSQL.
	keepRow = " ON CONFLICT DO NOTHING"
	// partlyDue is dueAt where the index has unpaid claims with a deadline
	// alone.
	partlyDue = "status = 0 AND pay_by > 0 AND pay_by <= ?"
	// intoClaims are the columns of every insert of claims.
	intoClaims = `INTO claims (campaign, shard, epoch, status, order_type, currency, restocked,
		seq, user_id, quantity, amount, request_key, pay_by, created_at) `
)

// formsOf has the forms of each kind of database.
var formsOf = [...]forms{
	sqldb.SQLite: {
		addBalance: addToExcluded, keepReference: keepRow, dueAt: partlyDue, byDue: "pay_by",
		claims:   manyRows{most: 128, text: sqliteInsertClaims, arguments: headThenRows},
		items:    manyRows{most: 1, text: func(int) string { return sqliteAssignItem }, arguments: headThenRows},
		itemRows: 128,
	},
	sqldb.MySQL: {
		addBalance:    " ON DUPLICATE KEY UPDATE balance = balance + VALUES(balance)",
		keepReference: " ON DUPLICATE KEY UPDATE reference = claim_references.reference",
		byClaim:       " FORCE INDEX (items_by_claim)", dueAt: "due_at <= ?", byDue: "due_at",
		claims:   manyRows{most: 512, text: mysqlInsertClaims, arguments: headBeforeEachRow},
		items:    manyRows{most: 512, text: mysqlAssignItems, arguments: headThenRows},
		itemRows: 512,
	},
	sqldb.Postgres: {
		addBalance: addToExcluded, keepReference: keepRow, dueAt: partlyDue, byDue: "pay_by",
		claims:   manyRows{most: 8192, anyCount: true, text: func(int) string { return postgresInsertClaims }, arguments: arrays},
		items:    manyRows{most: 8192, anyCount: true, text: func(int) string { return postgresAssignItems }, arguments: arrays},
		itemRows: 1024,
		seqs:     postgresSeqs, lockSeqs: postgresLockSeqs,
	},
}

// formsFor returns the forms of a session's database.
func formsFor(s *sqldb.Session) *forms { return &formsOf[s.Kind] }

// headThenRows leaves arguments in the order in which they are given.
func headThenRows(dst, head, rows []any, _ int) []any {
	return append(append(dst, head...), rows...)
}

// headBeforeEachRow repeats the fixed arguments for each row.
func headBeforeEachRow(dst, head, rows []any, width int) []any {
	for ; len(rows) > 0; rows = rows[width:] {
		dst = append(append(dst, head...), rows[:width]...)
	}
	return dst
}

// arrays turns rows into an array for each column.
func arrays(dst, head, rows []any, width int) []any {
	dst = append(dst, head...)
	for column := range width {
		if _, text := rows[column].(string); text {
			dst = append(dst, columnOf[string](rows[column:], width))
			continue
		}
		dst = append(dst, columnOf[int64](rows[column:], width))
	}
	return dst
}

// columnOf collects one column of rows that have width arguments each.
func columnOf[T any](rows []any, width int) []T {
	out := make([]T, 0, len(rows)/width+1)
	for i := 0; i < len(rows); i += width {
		out = append(out, rows[i].(T))
	}
	return out
}

// sqliteInsertClaims binds the columns that all claims of a batch share once: a
// question mark after numbered parameters takes the next number. OR FAIL spares
// SQLite the undoing of a half-done statement: a failure undoes the whole
// transaction in any case.
func sqliteInsertClaims(n int) string {
	return `INSERT OR FAIL ` + intoClaims + `VALUES ` + sqldb.Repeat("(?1,?2,?3,?4,?5,?6,0,?,?,?,?,?,?,?)", n)
}

// sqliteAssignItem gives one item to a claim and finds it by its key: given a
// list of items, SQLite reads all items of the campaign once for each of them.
const sqliteAssignItem = `UPDATE OR FAIL items SET claim_epoch = ?3, claim_seq = ?5
	WHERE campaign = ?1 AND shard = ?2 AND n = ?4 AND claim_epoch IS NULL AND withdrawn = 0`

// mysqlInsertClaims repeats the columns that all claims of a batch share.
func mysqlInsertClaims(n int) string {
	return `INSERT ` + intoClaims + `VALUES ` + sqldb.Repeat("(?,?,?,?,?,?,0,?,?,?,?,?,?,?)", n)
}

// mysqlAssignItems finds each item by its key: STRAIGHT_JOIN makes the list
// come first, however few items the server takes the campaign to have.
func mysqlAssignItems(n int) string {
	return `UPDATE (SELECT ? AS campaign, ? AS shard, ? AS epoch) AS run
		STRAIGHT_JOIN (SELECT ? AS n, ? AS seq` + strings.Repeat(" UNION ALL SELECT ?, ?", n-1) + `) AS given
		STRAIGHT_JOIN items ON items.campaign = run.campaign AND items.n = given.n
		SET items.claim_epoch = run.epoch, items.claim_seq = given.seq
		WHERE items.shard = run.shard AND items.claim_epoch IS NULL AND items.withdrawn = 0`
}

// On PostgreSQL the rows come as an array for each column: one text and few
// arguments, however many rows.
const (
	postgresInsertClaims = `INSERT ` + intoClaims + `SELECT ?, ?, ?, ?, ?, ?, 0, given.*
		FROM unnest(?::bigint[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]) AS given`
	postgresAssignItems = `UPDATE items SET claim_epoch = run.epoch, claim_seq = given.seq
		FROM (SELECT ?::integer AS campaign, ?::integer AS shard, ?::integer AS epoch) AS run, unnest(?::bigint[], ?::bigint[]) AS given (n, seq)
		WHERE items.campaign = run.campaign AND items.shard = run.shard AND items.n = given.n
		AND items.claim_epoch IS NULL AND items.withdrawn = 0`
)

// postgresSeqs finds each claim by its key, whatever the server takes the table
// to have: its statistics are from before the last rush, and for a list it
// would read all the campaign's claims.
func postgresSeqs(table, epoch, seq string) string {
	return `ctid = ANY (ARRAY(SELECT found.place FROM (SELECT ?::integer AS campaign, ?::integer AS shard, ?::integer AS epoch) AS run
		CROSS JOIN unnest(?::bigint[]) AS given (seq) CROSS JOIN LATERAL (SELECT ctid AS place FROM ` + table + ` AS t
		WHERE t.campaign = run.campaign AND t.shard = run.shard AND t.` + epoch + ` = run.epoch AND t.` + seq + ` = given.seq OFFSET 0) AS found))`
}

// postgresLockSeqs locks within the look-up, so that a transaction which waited
// for a row reads it as the other one left it.
func postgresLockSeqs(columns string) string {
	return `SELECT found.* FROM (SELECT ?::integer AS campaign, ?::integer AS shard, ?::integer AS epoch) AS run
		CROSS JOIN unnest(?::bigint[]) AS given (seq) CROSS JOIN LATERAL (SELECT ` + columns + ` FROM claims AS t
		WHERE t.campaign = run.campaign AND t.shard = run.shard AND t.epoch = run.epoch AND t.seq = given.seq FOR UPDATE) AS found`
}

// rowWriter collects rows of one epoch and writes them in multi-row statements.
type rowWriter struct {
	to *manyRows
	// head holds the fixed arguments; the third is the epoch. A row has width
	// arguments besides.
	head    []any
	width   int
	rows    []any
	args    []any
	epoch   uint16
	changed int64
}

// begin makes room for a row of an epoch.
func (w *rowWriter) begin(ctx context.Context, s *sqldb.Session, epoch uint16) error {
	if len(w.rows) == w.width*w.to.most || epoch != w.epoch {
		if _, err := w.flush(ctx, s); err != nil {
			return err
		}
	}
	w.epoch = epoch
	return nil
}

// flush writes the collected rows and returns how many rows all statements so
// far have changed.
func (w *rowWriter) flush(ctx context.Context, s *sqldb.Session) (int64, error) {
	w.head[2] = int64(w.epoch)
	for rows := w.rows; len(rows) > 0; {
		n := w.to.take(len(rows) / w.width)
		w.args = w.to.arguments(w.args[:0], w.head, rows[:n*w.width], w.width)
		changed, err := s.Exec(ctx, w.to.text(n), w.args...)
		if err != nil {
			return w.changed, err
		}
		w.changed += changed
		rows = rows[n*w.width:]
	}
	w.rows = w.rows[:0]
	return w.changed, nil
}
