package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// postgresDialect speaks to PostgreSQL at an address.
func postgresDialect(u *url.URL) (*Dialect, error) {
	c, err := parsePostgres(u)
	if err != nil {
		return nil, err
	}
	r := &server{
		settings: postgresSettings, screen: postgresScreen, check: postgresCheck, durable: postgresDurable,
		unixTime: "SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8", commit: postgresCommit,
		advise: postgresAdvise(c), secret: c.Password, locks: postgresLocks,
	}
	login := stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		if now := r.login(); now != nil {
			c.User = now.Username()
			c.Password, _ = now.Password()
		}
		return nil
	})
	return &Dialect{
		Kind: Postgres, ForUpdate: " FOR UPDATE", ForShare: " FOR SHARE", SkipLocked: " FOR UPDATE SKIP LOCKED", KeepExisting: " ON CONFLICT DO NOTHING",
		goose: goose.DialectPostgres,
		begin: "BEGIN", beginRead: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		rebind:   numbered,
		classify: postgresClassify,
		open:     func(usage) (*sql.DB, error) { return stdlib.OpenDB(*c, login), nil },
		server:   r,
	}, nil
}

// parsePostgres reads postgres://USER:PASSWORD@HOST:PORT/DATABASE?…, with the
// options and the environment that PostgreSQL's own programs know.
func parsePostgres(u *url.URL) (*pgx.ConnConfig, error) {
	if strings.Trim(u.Path, "/") == "" {
		return nil, errors.New("it must be like postgres://USER:PASSWORD@HOST:5432/DATABASE")
	}
	hosts, err := onlyWriters(u)
	if err != nil {
		return nil, err
	}
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, err
	}
	c.ConnectTimeout = eachHost(c.ConnectTimeout, hosts)
	c.DialFunc = dial
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "dibs"
	}
	return c, nil
}

// attrs is the option of an address that says which of several servers will do.
const attrs = "target_session_attrs"

// onlyWriters makes an address of several servers take the one that is written
// to. Each new connection looks for it, so that it is found again after a
// failover. It returns the number of servers.
func onlyWriters(u *url.URL) (hosts int, err error) {
	hosts = strings.Count(u.Host, ",") + 1
	query := u.Query()
	wanted := query.Get(attrs)
	if wanted == "" {
		wanted = os.Getenv("PGTARGETSESSIONATTRS")
	}
	switch wanted {
	case "read-write", "primary":
	case "":
		if hosts > 1 {
			query.Set(attrs, "read-write")
			u.RawQuery = query.Encode()
		}
	default:
		// A standby shows an older state, and takes no writes.
		return 0, errors.New(attrs + " must be read-write or primary: the ledger is read and written at one server")
	}
	return hosts, nil
}

// eachHost is how long one of several servers has to answer: all are tried
// within connectPatience.
func eachHost(wanted time.Duration, hosts int) time.Duration {
	most := connectPatience / time.Duration(hosts)
	if wanted == 0 || wanted > most {
		return most
	}
	return wanted
}

// addressOf names the servers of an address, for people.
func addressOf(c *pgx.ConnConfig) string {
	var all []string
	for _, f := range append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}, c.Fallbacks...) {
		// Each is listed once with TLS and once without, one after the other.
		if at := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); len(all) == 0 || all[len(all)-1] != at {
			all = append(all, at)
		}
	}
	return strings.Join(all, ",")
}

// numbered turns question marks into $1, $2 and so on.
func numbered(statement string) string {
	parts := strings.Split(statement, "?")
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(p)
	}
	return b.String()
}

// postgresSettings sets what dibs relies on, whatever the server's
// configuration says.
func postgresSettings(use usage) []string {
	stalled := stallPatience
	if use == forReading {
		// A reader holds no locks that others wait for.
		stalled = idlePatience
	}
	settings := []string{
		"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"SET lock_timeout = " + strconv.Itoa(int(lockPatience.Milliseconds())),
		// A commit is on the disk before it is answered. A stronger setting (a
		// standby's disk too) stays. It is set in any case: what the connection has
		// by itself would follow the server's configuration when that is changed.
		"SELECT set_config('synchronous_commit', CASE own WHEN 'off' THEN 'on' ELSE own END, false) FROM current_setting('synchronous_commit') AS own",
		// The server closes the connection of a vanished machine within half a
		// minute, and ends the transaction of a process that does nothing.
		"SET tcp_keepalives_idle = 10", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 4", "SET tcp_user_timeout = 30000",
		"SET idle_in_transaction_session_timeout = " + strconv.Itoa(int(stalled.Milliseconds())),
	}
	if use == forReading {
		settings = append(settings, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
	}
	return []string{strings.Join(settings, "; ")}
}

// postgresCommit commits. When a statement of the transaction failed,
// PostgreSQL reports success for the COMMIT, and names the ROLLBACK that it did
// instead.
func postgresCommit(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(c any) error {
		tag, err := c.(*stdlib.Conn).Conn().Exec(ctx, "COMMIT")
		if err == nil && tag.String() != "COMMIT" {
			err = errRolledBack
		}
		return err
	})
}

// postgresCheck refuses servers that lose commits, and encodings that cannot
// hold every text.
func postgresCheck(ctx context.Context, conn *sql.Conn) error {
	v, err := readPostgresVariables(ctx, conn)
	if err != nil {
		return err
	}
	lost := remedies(v.durable())
	switch {
	case v.version < 120000:
		return fmt.Errorf("%w: its version is %d, and PostgreSQL 12 is the oldest that will do", errUnfit, v.version/10000)
	case len(lost) > 0:
		return fmt.Errorf("%w: it loses commits with the power: %s", errUnfit, strings.Join(lost, ", "))
	case v.encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding is %s: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", errUnfit, v.encoding)
	}
	return nil
}

// postgresVariables are the settings that postgresCheck looks at.
type postgresVariables struct {
	version                    int
	fsync, fullPages, encoding string
}

func readPostgresVariables(ctx context.Context, conn *sql.Conn) (v postgresVariables, err error) {
	err = conn.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('fsync'),
		current_setting('full_page_writes'), current_setting('server_encoding')`).Scan(&v.version, &v.fsync, &v.fullPages, &v.encoding)
	return v, err
}

// postgresDurable asks for the settings of Durable. synchronous_commit is each
// connection's own: see postgresSettings.
func postgresDurable(ctx context.Context, conn *sql.Conn) ([]Finding, error) {
	v, err := readPostgresVariables(ctx, conn)
	return v.durable(), err
}

// durable are the findings of Durable.
func (v *postgresVariables) durable() []Finding {
	return []Finding{
		// What was written meanwhile is on no disk yet.
		keeps("fsync", v.fsync, "on", "set fsync = on and run sync on its machine"),
		keeps("full_page_writes", v.fullPages, "on", ""),
	}
}

// postgresFaults are the classes of the server's errors, by their codes or by how these
// begin. 25006 is of a replica, which takes writes once it is promoted.
var postgresFaults = map[string]Fault{
	"23505": FaultUnique, "22": FaultConstraint, "23": FaultConstraint, "22021": FaultText, "22P05": FaultText,
	"40001": FaultConflict, "40P01": FaultConflict, "55P03": FaultConflict, "53100": FaultFull,
	"08": FaultIO, "53": FaultIO, "57": FaultIO, "58": FaultIO, "25006": FaultIO,
	"XX001": FaultCorrupt, "XX002": FaultCorrupt,
}

// postgresClassify reads the code (SQLSTATE) of the server's error.
func postgresClassify(err error) Fault {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		var connect *pgconn.ConnectError
		if lost(err) || errors.As(err, &connect) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) {
			return FaultIO
		}
		return FaultOther
	}
	if fault, known := postgresFaults[e.Code]; known {
		return fault
	}
	return postgresFaults[e.Code[:2]]
}

// postgresAdvise says what to do about errors that people can repair.
func postgresAdvise(c *pgx.ConnConfig) func(error) string {
	return func(err error) string {
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			var connect *pgconn.ConnectError
			if errors.As(err, &connect) {
				if c.TLSConfig != nil && len(c.Fallbacks) == 0 && strings.Contains(err.Error(), "refused TLS") {
					return noTLS + "sslmode"
				}
				if errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection) {
					return "no server at " + addressOf(c) + " takes writes: promote a standby, or wait until one is promoted"
				}
				err = errNoAnswer
			}
			return unreachable(err, addressOf(c), "PostgreSQL")
		}
		switch e.Code {
		case "28P01", "28000":
			return "the server does not let " + c.User + " in: correct user or password"
		case "3D000":
			return "there is no database " + c.Database + ": CREATE DATABASE " + c.Database + ", or correct its name"
		case "42501", "3F000":
			return "the user " + c.User + " has too few rights: ALTER DATABASE " + c.Database + " OWNER TO " + c.User +
				", or GRANT CREATE, USAGE ON SCHEMA public TO " + c.User
		case "25006":
			return readOnly
		}
		return ""
	}
}
