package sqlledger

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/ledger"
)

// migrations holds the SQL of every database, a folder each.
//
//go:embed migrations
var migrations embed.FS

// ledgerSchema is the schema of the ledger's tables. The folders of migrations
// have the same numbers for every database; a number may be missing in all of
// them.
//
// In a file, the index by user is written in random order, a page for almost
// every claim. A long log lets changes of one page meet before they are copied
// back: 128 MiB take an eighth less processor time than 64. Pages of 1, 2 and 8
// KiB cost an eighth more than 4. Measure with BenchmarkSettle.
var ledgerSchema = sqldb.Schema{
	Name: "ledger", Files: migrations, Folder: "migrations/",
	File: sqldb.FileTuning{PageBytes: 4096, CacheKiB: 64 << 10, LogPages: 32768},
}

// ErrSchema: the database has an older or a newer schema than this program
// wants.
var ErrSchema = sqldb.ErrSchema

// The default and the bounds of Options.Timeout.
const (
	DefaultTimeout = sqldb.DefaultTimeout
	MinTimeout     = sqldb.MinTimeout
	MaxTimeout     = sqldb.MaxTimeout
)

// Options are how a ledger or a journal is opened. The zero value is usable.
type Options struct {
	// Migrate brings an older schema, or an empty file, up to date.
	Migrate bool
	// AnySchema opens whatever schema there is, so that SchemaVersion and
	// Migrate can be called. Nothing else may be called before the schema fits.
	AnySchema bool
	// Timeout bounds each call, from MinTimeout to MaxTimeout; 0 means
	// DefaultTimeout. A call that reads or writes many rows may take longer,
	// while the database goes on answering. A call that runs out of time
	// returns dibs.ErrUnavailable.
	Timeout time.Duration
	// Login returns the user and the password of the address at each new connection to
	// a server; nil, also as an answer, for those in the address.
	Login func(address string) *url.Userinfo
	// Readers is how many connections read at the same time; 0 means 4.
	Readers int
	// Now is the clock for the times that the ledger itself writes; nil means
	// time.Now.
	Now func() time.Time
	// Tracer shows transactions as parts of the traces that they belong to; nil
	// for none.
	Tracer dibs.Tracer
	// Keys encrypt the secrets of webhooks, and with EncryptCodes items that are
	// stored from now on; nil for none. Items that are encrypted are read anyway.
	Keys         *keyring.Ring
	EncryptCodes bool
}

// WithDefaults returns the options with defaults in place of zero values.
func (o Options) WithDefaults() Options {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// serverWriters is how many connections of a ledger write to a server: one
// settles, and the others serve people.
const serverWriters = 4

// config is what the options say to the database.
func (o Options) config(writers int) (sqldb.Config, error) {
	if err := CheckTimeout(o.Timeout); err != nil {
		return sqldb.Config{}, fmt.Errorf("sqlledger: Options.Timeout %w", err)
	}
	o = o.WithDefaults()
	return sqldb.Config{Timeout: o.Timeout, Login: o.Login, Readers: o.Readers, Writers: writers, Now: o.Now, Explain: explain, Codes: &keyring.Equals{Ring: o.Keys, On: o.EncryptCodes}}, nil
}

// Ledger is the ledger in an SQL database. It is safe for concurrent use.
//
// Each group of tables has a type of its own, which needs the database and none
// of the other groups: a service can be given the one field that it uses.
type Ledger struct {
	// The offers, and their stock.
	*Catalog
	*Stock
	// The way of a grant into the ledger, and of a claim through its states.
	*Settlement
	*Deployments
	*Claims
	*RegularOrders
	*Funds
	*Feed
	*Webhooks
	*Audiences
	*Announcements
	*Access
	*RevokedTokens
	*ConsoleSessions
	*PendingActs
	*Erasures
	*Audits
	*Rooms
	db *sqldb.DB
}

// Open opens the ledger at an address:
//
//	sqlite:PATH
//	mysql://USER:PASSWORD@HOST:3306/DATABASE?tls=true|false|skip-verify|preferred
//	postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=…
//	postgres://USER:PASSWORD@HOST1:5432,HOST2:5432/DATABASE
//
// MySQL stands for MariaDB too. Of several PostgreSQL servers, each connection
// takes the one that is written to. A server is given four seconds to answer;
// the error says what to do and shows no password. Open refuses a server that
// does not keep its promises (a commit on the disk before the answer,
// constraints) and a pooler that shares connections between transactions. A
// schema that does not fit is ErrSchema unless the options say otherwise.
func Open(ctx context.Context, address string, opts Options) (*Ledger, error) {
	c, err := opts.config(serverWriters)
	if err != nil {
		return nil, err
	}
	if opts.Tracer != nil {
		c.Trace = func(ctx context.Context, op string) (context.Context, func(error)) {
			return opts.Tracer.Part(ctx, "ledger "+spanName(op), slog.String("dibs.operation", op))
		}
	}
	db, err := sqldb.Open(ctx, address, &ledgerSchema, c)
	if err != nil {
		return nil, err
	}
	if err := ensureSchema(ctx, db, opts, db.Migrate); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return newLedger(db, opts.Keys), nil
}

// OpenSQLite is Open for a file. It makes the file and its folder, readable by
// their owner alone, when they are missing.
func OpenSQLite(ctx context.Context, path string, opts Options) (*Ledger, error) {
	return Open(ctx, "sqlite:"+path, opts)
}

// newLedger makes the groups. They share nothing but the database. keys may be nil.
func newLedger(db *sqldb.DB, keys *keyring.Ring) *Ledger {
	return &Ledger{
		Catalog: &Catalog{db}, Stock: &Stock{db}, Settlement: &Settlement{db}, Deployments: &Deployments{db}, Claims: &Claims{db}, RegularOrders: &RegularOrders{db}, Funds: &Funds{db},
		Feed: &Feed{db}, Webhooks: &Webhooks{db, keys}, Audiences: &Audiences{db}, Announcements: &Announcements{db}, Access: &Access{db}, RevokedTokens: &RevokedTokens{db}, ConsoleSessions: &ConsoleSessions{db}, PendingActs: &PendingActs{db},
		Erasures: &Erasures{db}, Audits: &Audits{db}, Rooms: &Rooms{db}, db: db,
	}
}

// Parts returns the groups of tables by the services that use them.
func (l *Ledger) Parts() ledger.Ledger {
	return ledger.Ledger{
		Live: l, Claims: l, Campaigns: l, Orders: l, Funds: l, Announce: l, Events: l, Webhooks: l, Access: l, Revoked: l, Sessions: l, Approvals: l, Erasure: l, Audit: l,
		Audiences: l, Rooms: l, Deployments: l.Deployments, Database: l,
	}
}

// ensureSchema makes sure that the schema is the one that the options ask for.
// migrate is how the caller migrates: the journal takes its lock for that.
func ensureSchema(ctx context.Context, db *sqldb.DB, opts Options, migrate func(context.Context) (int, error)) error {
	if opts.AnySchema {
		return nil
	}
	err := db.CheckSchema(ctx)
	if opts.Migrate && errors.Is(err, sqldb.ErrOldSchema) {
		_, err = migrate(ctx)
	}
	return err
}

// spanName is an operation without what it is done to: its first two words.
// Names of spans have to be few: the shard or the campaign is in an attribute.
func spanName(op string) string {
	words := strings.SplitN(op, " ", 3)
	if len(words) > 1 && !strings.ContainsAny(words[1], "0123456789") {
		return words[0] + " " + words[1]
	}
	return words[0]
}

// Migrate applies the migrations that are missing and returns how many those
// were. It may run while others use the ledger only if they know both schemas.
func (l *Ledger) Migrate(ctx context.Context) (applied int, err error) { return l.db.Migrate(ctx) }

// SchemaVersion returns the version of the schema and the one that this program
// wants.
func (l *Ledger) SchemaVersion(ctx context.Context) (current, want int64, err error) {
	return l.db.SchemaVersion(ctx)
}

// Ping returns nil when the database answers.
func (l *Ledger) Ping(ctx context.Context) error { return l.db.Ping(ctx) }

// Durable asks a server for each setting without which it may lose what it has
// committed; a file has none. An error means that it did not answer.
func (l *Ledger) Durable(ctx context.Context) ([]dibs.Finding, error) {
	found, err := l.db.Durable(ctx)
	return findings(found), err
}

// Close waits for what is under way and closes all connections. Calling it
// twice is harmless.
func (l *Ledger) Close() error { return l.db.Close() }

// CheckTimeout returns what is wrong with an Options.Timeout.
func CheckTimeout(d time.Duration) error { return sqldb.CheckTimeout(d) }

// Check returns what is wrong with an address, as far as it can be seen without
// going there. The error shows no password.
func Check(address string) error { return sqldb.Check(address) }

// InServer reports whether an address is a database server's, and not a file's.
func InServer(address string) bool { return sqldb.OnServer(address) }

// IsPlain reports whether a server of an address is reached over the network without TLS, or with TLS that takes any
// server for the right one.
func IsPlain(address string) bool { return sqldb.IsPlain(address) }

// IsHere reports whether a host, with or without a port, is this machine.
func IsHere(host string) bool { return sqldb.IsHere(host) }

// Place returns an address as it can be shown: without user, password and
// options.
func Place(address string) string { return sqldb.Place(address) }

// Examine looks at the database that a ledger is, or will be, in: whether it
// can be reached, keeps what it commits, has the right time, gives the rights
// that are needed, and has the schema that this program wants. On a server it
// makes a table for a moment, to know that it may; it leaves nothing behind. It
// ends within some seconds, and no text holds a password.
func Examine(ctx context.Context, address string) []dibs.Finding {
	return findings(sqldb.Examine(ctx, address, &ledgerSchema))
}

// findings are the findings of sqldb as the contract has them.
func findings(found []sqldb.Finding) []dibs.Finding {
	list := make([]dibs.Finding, len(found))
	for i, f := range found {
		list[i] = dibs.Finding{Standing: dibs.Standing(f.Level), Subject: f.Subject, Found: f.Found, Wanted: f.Wanted, Remedy: f.Remedy}
	}
	return list
}
