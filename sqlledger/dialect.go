package sqlledger

import (
	"database/sql"
	"embed"
	"io/fs"

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
	// faultBusy: someone else holds a lock; it passes.
	faultBusy
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
	goose  goose.Dialect
	folder string
	// begin starts a writing transaction, beginRead a snapshot for reading.
	begin, beginRead string
	// rebind turns the question marks of a statement into the database's
	// placeholders; nil keeps them.
	rebind func(statement string) string
	// keepExisting is what an insert ends with so that an existing row stays.
	keepExisting string
	// claimRows is the most claims written by one statement, itemRows the most
	// items.
	claimRows, itemRows int
	// insertClaims returns an insert of n claims. Its arguments are campaign,
	// shard, epoch, status, order type and currency, then for each claim seq,
	// user, quantity, amount, request key, pay_by and created_at.
	insertClaims func(n int) string
	// tuples returns the right side of an IN for n tuples of width values.
	tuples func(n, width int) string
	// classify tells what kind of fault a driver's error is.
	classify func(error) fault
	// open returns a pool of connections. Those for reading cannot write.
	open func(place string, use usage) (*sql.DB, error)
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
