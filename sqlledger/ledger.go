package sqlledger

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledger"
)

// Options are how a ledger or a journal is opened. The zero value is usable.
type Options struct {
	// Migrate brings an older schema, or an empty file, up to date.
	Migrate bool
	// AnySchema opens whatever schema there is, so that SchemaVersion and
	// Migrate can be called. Nothing else may be called before the schema fits.
	AnySchema bool
	// Timeout bounds each call, from MinTimeout to MaxTimeout; 0 means DefaultTimeout.
	// A call that reads or writes many rows may take longer, while the database goes
	// on answering. A call that runs out of time is dibs.ErrUnavailable.
	Timeout time.Duration
	// Readers is how many connections read at the same time; 0 means 4.
	Readers int
	// Now is the clock for what the ledger dates itself; nil means time.Now.
	Now func() time.Time
	// Tracer shows transactions as parts of the traces that they are made in; nil
	// for none.
	Tracer dibs.Tracer
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

// Ledger is the ledger in an SQL database. It is safe for concurrent use.
type Ledger struct {
	d       *dialect
	place   string
	opts    Options
	writers *pool
	readers *pool
}

// OpenSQLite opens the ledger in a file, and makes the file and its folder,
// readable by their owner alone, when they are missing. A schema that does not
// fit is ErrSchema unless the options say otherwise.
func OpenSQLite(ctx context.Context, path string, opts Options) (*Ledger, error) {
	path, err := prepareFile(ctx, path, ledgerTuning)
	if err != nil {
		return nil, err
	}
	// A file has one writer at a time: queueing here is fair, and the file's
	// own lock is not.
	return open(ctx, sqliteDialect("sqlite", ledgerTuning), path, 1, opts.WithDefaults())
}

// open makes a ledger of any dialect with a number of writing connections.
func open(ctx context.Context, d *dialect, place string, writers int, opts Options) (*Ledger, error) {
	if err := d.bounded(opts); err != nil {
		return nil, err
	}
	if err := d.ready(ctx, place, opts); err != nil {
		return nil, err
	}
	w, err := newPool(d, place, forWriting, writers)
	if err != nil {
		return nil, err
	}
	r, err := newPool(d, place, forReading, opts.Readers)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return &Ledger{d: d, place: place, opts: opts, writers: w, readers: r}, nil
}

// Migrate applies the migrations that are missing and returns how many those
// were. It may run while others use the ledger only if they know both schemas.
func (l *Ledger) Migrate(ctx context.Context) (applied int, err error) {
	return l.d.migrate(ctx, l.place)
}

// SchemaVersion returns the version of the schema and the one that this
// program wants.
func (l *Ledger) SchemaVersion(ctx context.Context) (current, want int64, err error) {
	return l.d.versions(ctx, l.place)
}

// Ping implements dibs.Ledger.
func (l *Ledger) Ping(ctx context.Context) error {
	return l.read(ctx, "ping", func(s *session) error {
		var one int
		return s.row(ctx, "SELECT 1", nil, &one)
	})
}

// Close implements dibs.Ledger. It waits for what is under way; calling it
// twice is harmless.
func (l *Ledger) Close() error {
	// The readers go first: the last connection to close tidies the log away,
	// and only one that may write can do it.
	return errors.Join(l.readers.close(), l.writers.close())
}

// write runs f in one transaction, or in several of which only the last counts.
func (l *Ledger) write(ctx context.Context, op string, f func(*session) error) error {
	ctx, end := l.part(ctx, op)
	err := l.d.explain(op, l.writers.transactAgain(ctx, l.d.begin, f))
	end(err)
	return err
}

// read runs f, which reads by one statement.
func (l *Ledger) read(ctx context.Context, op string, f func(*session) error) error {
	s, err := l.readers.take(ctx)
	if err != nil {
		return l.d.explain(op, err)
	}
	return l.d.explain(op, errors.Join(s.call.late(f(s)), l.readers.give(s)))
}

// snapshot runs f, which reads by several statements, on one state of the
// ledger.
func (l *Ledger) snapshot(ctx context.Context, op string, f func(*session) error) error {
	ctx, end := l.part(ctx, op)
	err := l.d.explain(op, l.readers.transact(ctx, l.d.beginRead, f))
	end(err)
	return err
}

// part begins the span of a transaction, where somebody traces.
func (l *Ledger) part(ctx context.Context, op string) (context.Context, func(error)) {
	if l.opts.Tracer == nil {
		return ctx, untraced
	}
	return l.opts.Tracer.Part(ctx, "ledger "+kindOf(op), slog.String("dibs.operation", op))
}

// kindOf is an operation without what it is done to: its first two words.
func kindOf(op string) string {
	words := strings.SplitN(op, " ", 3)
	if len(words) > 1 && !strings.ContainsAny(words[1], "0123456789") {
		return words[0] + " " + words[1]
	}
	return words[0]
}

func untraced(error) {}

// fromMS is the time of milliseconds since 1970.
func fromMS(v int64) time.Time { return time.UnixMilli(v).UTC() }

// fromOptionalMS is fromMS where 0 means no time.
func fromOptionalMS(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return fromMS(v)
}

// toOptionalMS is a time in milliseconds since 1970; 0 for none.
func toOptionalMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
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

// Parts returns the ledger by the services that use it: this one database fills
// all of them.
func (l *Ledger) Parts() ledger.Ledger {
	return ledger.Ledger{
		Live: l, Claims: l, Campaigns: l, Orders: l, Funds: l, Announce: l, Events: l, Webhooks: l, Access: l, Erasure: l, Audit: l,
		Audiences: l, Rooms: l, Database: l,
	}
}
