package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// parsePostgres reads postgres://USER:PASSWORD@HOST:PORT/DATABASE?…, with the
// options and the environment that PostgreSQL's own programs know.
func parsePostgres(u *url.URL) (*pgx.ConnConfig, error) {
	if strings.Trim(u.Path, "/") == "" {
		return nil, errors.New("it must be like postgres://USER:PASSWORD@HOST:5432/DATABASE")
	}
	hosts, err := oneThatWrites(u)
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

// postgresDialect speaks to PostgreSQL.
func postgresDialect(kind string, c *pgx.ConnConfig) *dialect {
	return &dialect{
		goose: goose.DialectPostgres, folder: "migrations/" + folderOf(kind, "postgres"), applied: "dibs_" + kind + "_versions",
		begin: "BEGIN", beginRead: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		rebind: numbered, keepExisting: " ON CONFLICT DO NOTHING", addBalance: addToExcluded,
		forUpdate: " FOR UPDATE", forShare: " FOR SHARE",
		skipLocked: " FOR UPDATE SKIP LOCKED", dueAt: partlyDue, byDue: "pay_by",
		seqs: postgresSeqs, lockSeqs: postgresLockSeqs,
		claims:   manyRows{most: 8192, anyCount: true, text: func(int) string { return postgresInsertClaims }, arguments: arrays},
		items:    manyRows{most: 8192, anyCount: true, text: func(int) string { return postgresAssignItems }, arguments: arrays},
		itemRows: 1024, among: anyOf,
		classify: postgresClassify,
		open:     func(string, usage) (*sql.DB, error) { return stdlib.OpenDB(*c), nil },
		server: &server{
			settings: postgresSettings, screen: postgresScreen, check: postgresCheck, unixTime: "SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8", commit: postgresCommit,
			advise: postgresAdvise(c), secret: c.Password, locks: postgresLocks,
		},
	}
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

// postgresSettings do not leave to the server's configuration what dibs relies
// on.
func postgresSettings(use usage) []string {
	stalled := stallPatience
	if use == forReading {
		// It has no locks that others wait for.
		stalled = idlePatience
	}
	settings := []string{
		"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"SET lock_timeout = " + strconv.Itoa(int(lockPatience.Milliseconds())),
		// A commit is on the disk before it is answered; more is left as it is.
		"SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
		// The server lets go of a machine that is gone within half a minute, and
		// of a transaction whose owner sleeps.
		"SET tcp_keepalives_idle = 10", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 4", "SET tcp_user_timeout = 30000",
		"SET idle_in_transaction_session_timeout = " + strconv.Itoa(int(stalled.Milliseconds())),
	}
	if use == forReading {
		settings = append(settings, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
	}
	return []string{strings.Join(settings, "; ")}
}

// postgresCommit commits. PostgreSQL answers the COMMIT of a transaction in which
// a statement failed with success, and with the word ROLLBACK.
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
	var version int
	var fsync, fullPages, encoding string
	if err := conn.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('fsync'),
		current_setting('full_page_writes'), current_setting('server_encoding')`).Scan(&version, &fsync, &fullPages, &encoding); err != nil {
		return err
	}
	switch {
	case version < 120000:
		return fmt.Errorf("%w: its version is %d, and PostgreSQL 12 is the oldest that will do", errUnfit, version/10000)
	case fsync != "on" || fullPages != "on":
		return fmt.Errorf("%w: it loses commits with the power: set fsync = on and full_page_writes = on", errUnfit)
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding is %s: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", errUnfit, encoding)
	}
	return nil
}

// The rows of these come as an array for each column: one text and few
// arguments, however many rows.
const (
	postgresInsertClaims = `INSERT INTO claims (campaign, shard, epoch, status, order_type, currency, restocked,
		seq, user_id, quantity, amount, request_key, pay_by, created_at)
		SELECT ?, ?, ?, ?, ?, ?, 0, given.* FROM unnest(?::bigint[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]) AS given`
	postgresAssignItems = `UPDATE items SET claim_epoch = run.epoch, claim_seq = given.seq
		FROM (SELECT ?::integer AS campaign, ?::integer AS shard, ?::integer AS epoch) AS run, unnest(?::bigint[], ?::bigint[]) AS given (n, seq)
		WHERE items.campaign = run.campaign AND items.shard = run.shard AND items.n = given.n
		AND items.claim_epoch IS NULL AND items.withdrawn = 0`
)

// postgresSeqs finds each place by its key, whatever the server takes the table
// to have: what it knows is of before the last rush, and it would read all the
// campaign's claims for a list of some.
func postgresSeqs(table, epoch, seq string) string {
	return `ctid = ANY (ARRAY(SELECT found.place FROM (SELECT ?::integer AS campaign, ?::integer AS shard, ?::integer AS epoch) AS run
		CROSS JOIN unnest(?::bigint[]) AS given (seq) CROSS JOIN LATERAL (SELECT ctid AS place FROM ` + table + ` AS t
		WHERE t.campaign = run.campaign AND t.shard = run.shard AND t.` + epoch + ` = run.epoch AND t.` + seq + ` = given.seq OFFSET 0) AS found))`
}

// postgresLockSeqs locks within the look-up: who waits for a row finds it as
// the other one left it.
func postgresLockSeqs(columns string) string {
	return `SELECT found.* FROM (SELECT ?::integer AS campaign, ?::integer AS shard, ?::integer AS epoch) AS run
		CROSS JOIN unnest(?::bigint[]) AS given (seq) CROSS JOIN LATERAL (SELECT ` + columns + ` FROM claims AS t
		WHERE t.campaign = run.campaign AND t.shard = run.shard AND t.epoch = run.epoch AND t.seq = given.seq FOR UPDATE) AS found`
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

func columnOf[T any](rows []any, width int) []T {
	out := make([]T, 0, len(rows)/width+1)
	for i := 0; i < len(rows); i += width {
		out = append(out, rows[i].(T))
	}
	return out
}

// isEOF reports whether the other side closed the connection.
func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func postgresClassify(err error) fault {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		var connect *pgconn.ConnectError
		if lost(err) || errors.As(err, &connect) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) {
			return faultIO
		}
		return faultOther
	}
	switch e.Code {
	case "23505":
		return faultUnique
	case "22021", "22P05":
		return faultText
	case "40001", "40P01", "55P03":
		return faultConflict
	case "53100":
		return faultFull
	case "XX001", "XX002":
		return faultCorrupt
	case "25006":
		// A replica, which is written to again once it is promoted.
		return faultIO
	}
	switch e.Code[:2] {
	case "22", "23":
		return faultConstraint
	case "08", "53", "57", "58":
		return faultIO
	}
	return faultOther
}

// postgresAdvise says what to do about errors that people can mend.
func postgresAdvise(c *pgx.ConnConfig) func(error) string {
	return func(err error) string {
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			var connect *pgconn.ConnectError
			if errors.As(err, &connect) {
				if c.TLSConfig != nil && len(c.Fallbacks) == 0 && strings.Contains(err.Error(), "refused TLS") {
					return noTLS + "sslmode"
				}
				if advice := noneWrites(c, err); advice != "" {
					return advice
				}
				err = errNoAnswer
			}
			return silent(err, addressOf(c), "PostgreSQL")
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
