package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// The addresses of databases that ledgers can be in, by how they begin.
const (
	schemeSQLite   = "sqlite:"
	schemeMySQL    = "mysql"
	schemePostgres = "postgres"
)

// Open opens the ledger at an address:
//
//	sqlite:PATH
//	mysql://USER:PASSWORD@HOST:3306/DATABASE?tls=true|false|skip-verify|preferred
//	postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=…
//	postgres://USER:PASSWORD@HOST1:5432,HOST2:5432/DATABASE
//
// MySQL stands for MariaDB too. Of several PostgreSQL servers, each connection
// takes the one that is written to. A server is given four seconds to answer; the
// error says what to do and shows no password. One that does not keep its
// promises (a commit on the disk before the answer, constraints) is refused, and so
// is a pooler that shares connections between transactions. A schema that does not
// fit is ErrSchema unless the options say otherwise.
func Open(ctx context.Context, address string, opts Options) (*Ledger, error) {
	if path, ok := strings.CutPrefix(address, schemeSQLite); ok {
		return OpenSQLite(ctx, path, opts)
	}
	d, place, err := serverDialect("ledger", address)
	if err != nil {
		return nil, err
	}
	if err := d.reach(ctx, place); err != nil {
		return nil, err
	}
	return open(ctx, d, place, serverWriters, opts.WithDefaults())
}

// OpenJournal opens the journal at an address as Open takes it. In a server
// it is in the ledger's database, in tables of its own; one of a Galera cluster is
// refused, since its locks are each server's own.
func OpenJournal(ctx context.Context, address string, opts Options) (*JournalTable, error) {
	if path, ok := strings.CutPrefix(address, schemeSQLite); ok {
		return OpenSQLiteJournal(ctx, path, opts)
	}
	d, place, err := serverDialect("journal", address)
	if err != nil {
		return nil, err
	}
	if err := d.reach(ctx, place); err != nil {
		return nil, err
	}
	if err := d.mayOwn(); err != nil {
		return nil, d.explain("keep the journal in "+place, err)
	}
	return openJournal(ctx, d, place, nil, opts.WithDefaults())
}

// InServer reports whether an address is that of a database server, not a
// file's.
func InServer(address string) bool { return address != "" && !strings.HasPrefix(address, schemeSQLite) }

// Check returns what is wrong with an address, as far as it can be seen
// without going there. The error shows no password.
func Check(address string) error {
	if path, ok := strings.CutPrefix(address, schemeSQLite); ok {
		if path == "" || strings.HasPrefix(path, "//") {
			return errors.New("it must be sqlite: and the path of a file, such as sqlite:/var/lib/dibs/ledger.db")
		}
		return nil
	}
	_, _, err := serverDialect("ledger", address)
	return err
}

// Place is an address as it can be shown: without user, password and options.
func Place(address string) string {
	if !InServer(address) {
		return address
	}
	_, place, err := serverDialect("ledger", address)
	if err != nil {
		return "an address that cannot be read"
	}
	return place
}

// serverDialect reads the address of a server. place is what can be shown of
// it.
func serverDialect(kind, address string) (d *dialect, place string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error repeats the address, and the password with it.
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, "", fmt.Errorf("sqlledger: the address cannot be read: %w (write special characters in a password as %%40)",
			&hidden{err, address})
	}
	u.Scheme = strings.Replace(strings.Replace(u.Scheme, "mariadb", schemeMySQL, 1), "postgresql", schemePostgres, 1)
	place = u.Scheme + "://" + u.Host + u.Path
	password, _ := u.User.Password()
	switch u.Scheme {
	case schemeMySQL:
		c, err := parseMySQL(u)
		if err != nil {
			return nil, "", fmt.Errorf("sqlledger: the address %s: %w", place, err)
		}
		return mysqlDialect(kind, c), place, nil
	case schemePostgres:
		c, err := parsePostgres(u)
		if err != nil && password != "" {
			err = &hidden{err, password}
		}
		if err != nil {
			return nil, "", fmt.Errorf("sqlledger: the address %s: %w", place, err)
		}
		return postgresDialect(kind, c), place, nil
	}
	return nil, "", errors.New("sqlledger: the address must begin with sqlite:, mysql:// or postgres://")
}

// folderOf is the folder of the migrations of a kind of table.
func folderOf(kind, database string) string {
	if kind == "journal" {
		return "journal_" + database
	}
	return database
}
