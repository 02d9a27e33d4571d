package sqlledger

import (
	"database/sql"
	"embed"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

// migrations holds the SQL of every dialect, a folder each.
//
//go:embed migrations
var migrations embed.FS

// fault is the class of a database's error: what a caller can do about it.
type fault int

const (
	// faultOther is an error of the program: a wrong statement, a broken file.
	faultOther fault = iota
	// faultUnique: a row with this key is there already.
	faultUnique
	// faultConstraint: another constraint refused the row.
	faultConstraint
	// faultText: a text has characters that the database cannot keep.
	faultText
	// faultBusy: someone else holds a lock; it passes.
	faultBusy
	// faultConflict: the database ended the transaction in favour of another
	// one. Nothing was written, and the same again is likely to work.
	faultConflict
	// faultFull: no space is left, and nothing was written.
	faultFull
	// faultIO: the disk or the connection failed.
	faultIO
	// faultCorrupt: the stored bytes are damaged.
	faultCorrupt
)

// dialect is what differs from one database to another.
type dialect struct {
	// goose names the dialect to the migrations, whose files are in folder.
	// applied is the table that lists those applied; empty for goose's own.
	goose           goose.Dialect
	folder, applied string
	// begin starts a writing transaction, beginRead a snapshot for reading.
	begin, beginRead string
	// rebind turns the question marks of a statement into the database's
	// placeholders; nil keeps them.
	rebind func(statement string) string
	// keepExisting is what an insert ends with so that an existing row stays.
	// Without it, the insert fails and the transaction goes on.
	keepExisting string
	// addBalance is what an insert of accounts ends with so that the balance is
	// added to that of a row that is there.
	addBalance string
	// byClaim follows the table of items where they are looked for by their claims,
	// to make the database use the index for it. Items begin without a claim, and
	// by statistics from that time MariaDB takes the index for useless: it would read
	// all items of a campaign for each claim.
	byClaim string
	// forUpdate is what a SELECT ends with whose rows nobody else may change
	// before the transaction ends; forShare, nobody may, with others who only
	// keep them as they are. Both are empty where one transaction writes at a
	// time.
	forUpdate, forShare string
	// skipLocked is forUpdate for rows that nobody else is about to change.
	skipLocked string
	// dueAt is the condition of claims whose deadline is not after a time, and
	// byDue their order: what the index of deadlines is made for.
	dueAt, byDue string
	// claims inserts claims. Its fixed arguments are campaign, shard, epoch,
	// status, order type and currency, those of a row seq, user, quantity,
	// amount, request key, pay_by and created_at.
	claims manyRows
	// items gives free items to claims. Its fixed arguments are campaign, shard
	// and epoch, those of a row the item's number and the claim's seq.
	items manyRows
	// itemRows is the most items inserted by one statement.
	itemRows int
	// plainTuples says that the index is not used for comparisons of tuples,
	// but is for the same said column by column.
	plainTuples bool
	// among is the condition that a tuple of columns is one of n tuples.
	among func(columns []string, n int) string
	// seqs is a statement's condition for n claims of one epoch of a shard, by
	// the names of its table and of the columns of their places; nil for a list.
	seqs func(table, epoch, seq string) string
	// lockSeqs begins and ends a statement that reads some columns of claims of
	// one epoch of a shard and locks them; empty for a list.
	lockSeqs func(columns string) string
	// classify tells what kind of fault a driver's error is.
	classify func(error) fault
	// open returns a pool of connections. Those for reading cannot write.
	open func(place string, use usage) (*sql.DB, error)
	// timeout bounds each call; 0 means DefaultTimeout.
	timeout time.Duration
	// server is what only a database in another process has; nil without.
	server *server
}

// manyRows is a statement that writes many rows.
type manyRows struct {
	// most rows go into one statement.
	most int
	// anyCount says that one text does for any number of rows; without it, few
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
	return chunk(left, m.most)
}

// headThenRows are arguments in the order in which they are given.
func headThenRows(dst, head, rows []any, _ int) []any {
	return append(append(dst, head...), rows...)
}

// usage is what connections are opened for.
type usage int

const (
	forWriting usage = iota
	forReading
)

// sources returns the dialect's migrations.
func (d *dialect) sources() (fs.FS, error) { return fs.Sub(migrations, d.folder) }

// bound returns the statement with the database's placeholders.
func (d *dialect) bound(statement string) string {
	if d.rebind == nil {
		return statement
	}
	return d.rebind(statement)
}

// compare returns the condition that columns, taken in order, stand in a
// relation (one of < <= > >=) to values, and its arguments.
func (d *dialect) compare(columns []string, relation string, values ...any) (condition string, args []any) {
	if !d.plainTuples {
		return "(" + strings.Join(columns, ", ") + ") " + relation + " (" + repeat("?", len(columns)) + ")", values
	}
	// The first column decides, or is equal and the second decides, and so on.
	var ways []string
	equal := ""
	for i, c := range columns {
		last := i == len(columns)-1
		strict := relation[:1]
		if last {
			strict = relation
		}
		ways = append(ways, equal+c+" "+strict+" ?")
		args = append(append(args, values[:i]...), values[i])
		equal += c + " = ? AND "
	}
	return "(" + strings.Join(ways, " OR ") + ")", args
}

// anyOf is the condition that columns equal one of n tuples, said column by
// column.
func anyOf(columns []string, n int) string {
	one := "(" + strings.Join(columns, " = ? AND ") + " = ?)"
	return "(" + strings.TrimSuffix(strings.Repeat(one+" OR ", n), " OR ") + ")"
}

// inValues is the condition that columns equal one of n tuples.
func inValues(columns []string, n int) string {
	return "(" + strings.Join(columns, ", ") + ") IN (VALUES " + repeat("("+repeat("?", len(columns))+")", n) + ")"
}

// repeat joins n copies of s by commas.
func repeat(s string, n int) string {
	return strings.TrimSuffix(strings.Repeat(s+",", n), ",")
}
