package sqldb

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// schemeSQLite begins the address of a file. The Kinds' names begin those of
// servers.
const schemeSQLite = "sqlite:"

// Check returns what is wrong with an address, as far as it can be seen without
// going there. The error shows no password. An address is one of
//
//	sqlite:PATH
//	mysql://USER:PASSWORD@HOST:3306/DATABASE?tls=true|false|skip-verify|preferred
//	postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=…
//	postgres://USER:PASSWORD@HOST1:5432,HOST2:5432/DATABASE
func Check(address string) error {
	if path, ok := strings.CutPrefix(address, schemeSQLite); ok {
		if path == "" || strings.HasPrefix(path, "//") {
			return errors.New("it must be sqlite: and the path of a file, such as sqlite:/var/lib/dibs/ledger.db")
		}
		return nil
	}
	_, _, err := serverDialect(address)
	return err
}

// OnServer reports whether an address is a database server's, and not a file's.
func OnServer(address string) bool {
	return address != "" && !strings.HasPrefix(address, schemeSQLite)
}

// Place returns an address as it can be shown: without user, password and
// options.
func Place(address string) string {
	if !OnServer(address) {
		return address
	}
	_, place, err := serverDialect(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return place
}

// absolute makes the path in a file's address absolute.
func absolute(address string) (string, error) {
	path, ok := strings.CutPrefix(address, schemeSQLite)
	if !ok {
		return address, nil
	}
	path, err := filepath.Abs(path)
	return schemeSQLite + path, err
}

// parse reads an address. place is what can be shown of it.
func parse(address string, t FileTuning, patience time.Duration) (d *Dialect, place string, err error) {
	if path, ok := strings.CutPrefix(address, schemeSQLite); ok {
		return sqliteDialect(path, t, patience), path, nil
	}
	return serverDialect(address)
}

// kindOf returns the name of the kind of database that an address means.
func kindOf(u *url.URL) string {
	return strings.Replace(strings.Replace(u.Scheme, "mariadb", "mysql", 1), "postgresql", "postgres", 1)
}

// serverDialect reads the address of a server. place is what can be shown of
// it.
func serverDialect(address string) (d *Dialect, place string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error repeats the address, and the password with it.
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, "", fmt.Errorf("the address cannot be read: %w (write special characters in a password as %%40)", &hidden{err, address})
	}
	u.Scheme = kindOf(u)
	place = u.Scheme + "://" + u.Host + u.Path
	switch u.Scheme {
	case MySQL.String():
		d, err = mysqlDialect(u)
	case Postgres.String():
		d, err = postgresDialect(u)
	default:
		return nil, "", errors.New("the address must begin with sqlite:, mysql:// or postgres://")
	}
	if password, _ := u.User.Password(); err != nil && password != "" {
		err = &hidden{err, password}
	}
	if err != nil {
		return nil, "", fmt.Errorf("the address %s: %w", place, err)
	}
	d.server.login = func() *url.Userinfo { return nil }
	return d, place, nil
}
