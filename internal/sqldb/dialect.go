package sqldb

import (
	"database/sql"
	"strings"

	"github.com/pressly/goose/v3"
)

// Kind is a kind of database.
type Kind int

// The kinds. MySQL stands for MariaDB too.
const (
	SQLite Kind = iota
	MySQL
	Postgres
)

// String returns the kind's name, as in addresses and in folders of migrations.
func (k Kind) String() string { return [...]string{"sqlite", "mysql", "postgres"}[k] }

// Dialect is what differs from one database to another.
type Dialect struct {
	Kind Kind
	// ForUpdate ends a SELECT whose rows no other transaction may change before
	// this one ends. ForShare does the same, and lets others read the rows with
	// ForShare too. SkipLocked is ForUpdate that leaves out rows which another
	// transaction has locked. All are empty on SQLite, where one transaction
	// writes at a time.
	ForUpdate, ForShare, SkipLocked string
	// KeepExisting ends an INSERT that leaves rows alone whose key is taken. It
	// is empty on MySQL: there the INSERT fails, and the transaction goes on.
	KeepExisting string

	goose goose.Dialect
	// begin starts a transaction that writes, beginRead one whose reads all see
	// one state.
	begin, beginRead string
	// rebind turns the question marks of a statement into the database's
	// placeholders; nil keeps them.
	rebind func(statement string) string
	// plainTuples says that the database uses no index for comparisons of
	// tuples, but uses one for the same comparison written column by column.
	plainTuples bool
	// classify returns the class of a driver's error.
	classify func(error) Fault
	// open prepares connections and opens none yet. Those for reading cannot
	// write.
	open func(use usage) (*sql.DB, error)
	// server is what only a database in another process has; nil for SQLite.
	server *server
}

// usage is what a connection is opened for.
type usage int

const (
	forWriting usage = iota
	forReading
)

// bound returns the statement with the database's placeholders.
func (d *Dialect) bound(statement string) string {
	if d.rebind == nil {
		return statement
	}
	return d.rebind(statement)
}

// Compare returns the condition that columns, compared as a tuple, stand in a
// relation (one of < <= > >=) to values, and the condition's arguments.
func (d *Dialect) Compare(columns []string, relation string, values ...any) (condition string, args []any) {
	if !d.plainTuples {
		return "(" + strings.Join(columns, ", ") + ") " + relation + " (" + Repeat("?", len(columns)) + ")", values
	}
	// The first column decides, or it is equal and the second decides, and so
	// on.
	var cases []string
	equal := ""
	for i, c := range columns {
		strict := relation[:1]
		if i == len(columns)-1 {
			strict = relation
		}
		cases = append(cases, equal+c+" "+strict+" ?")
		args = append(append(args, values[:i]...), values[i])
		equal += c + " = ? AND "
	}
	return "(" + strings.Join(cases, " OR ") + ")", args
}

// AnyOf returns the condition that columns equal one of n tuples, column by
// column. Every database uses an index for it.
func AnyOf(columns []string, n int) string {
	one := "(" + strings.Join(columns, " = ? AND ") + " = ?)"
	return "(" + strings.TrimSuffix(strings.Repeat(one+" OR ", n), " OR ") + ")"
}

// Repeat joins n copies of s by commas.
func Repeat(s string, n int) string {
	return strings.TrimSuffix(strings.Repeat(s+",", n), ",")
}
