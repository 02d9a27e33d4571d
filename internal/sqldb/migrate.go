package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

var (
	// ErrSchema: the database has an older or a newer schema than this program
	// wants.
	ErrSchema = errors.New("the schema does not fit this program")
	// ErrOldSchema is the ErrSchema that Migrate repairs.
	ErrOldSchema = fmt.Errorf("%w: it is older", ErrSchema)
)

// migrations returns the schema's migrations for the database.
func (db *DB) migrations() (fs.FS, error) {
	return fs.Sub(db.schema.Files, db.schema.Folder+db.Kind.String())
}

// versionTable is the table that lists the migrations applied. A file has one
// schema, and goose's own table.
func (db *DB) versionTable() string {
	if db.server == nil {
		return goose.DefaultTablename
	}
	return "dibs_" + db.schema.Name + "_versions"
}

// withProvider calls f with the migrations, on a connection of their own.
func (db *DB) withProvider(ctx context.Context, f func(*goose.Provider) error) error {
	conn, err := db.open(forWriting)
	if err != nil {
		return err
	}
	return errors.Join(db.provide(ctx, conn, f), conn.Close())
}

// provide calls f with the migrations while no other process migrates. It takes
// the lock for reading too: even reading the version makes its table when that
// is missing.
func (db *DB) provide(ctx context.Context, conn *sql.DB, f func(*goose.Provider) error) error {
	files, err := db.migrations()
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(db.goose, conn, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName(db.versionTable()))
	if err != nil {
		return err
	}
	if db.server == nil {
		return aloneIn(ctx, filepath.Dir(db.place), func() error { return f(p) })
	}
	return db.server.locks.alone(ctx, conn, func(c *sql.Conn) error {
		if err := db.ensureVersionTable(ctx, c); err != nil {
			return err
		}
		return f(p)
	})
}

// ensureVersionTable makes the table of versions, and fails at once when it
// cannot: goose would try for seconds.
func (db *DB) ensureVersionTable(ctx context.Context, conn *sql.Conn) error {
	store, err := database.NewStore(db.goose, db.versionTable())
	if err != nil {
		return err
	}
	_, err = store.GetLatestVersion(ctx, conn)
	if err == nil {
		return nil
	}
	if !errors.Is(err, database.ErrVersionNotFound) {
		if err := store.CreateVersionTable(ctx, conn); err != nil {
			return err
		}
	}
	return store.Insert(ctx, conn, database.InsertRequest{Version: 0})
}

// SchemaVersion returns the version of the schema and the one that this program
// wants.
func (db *DB) SchemaVersion(ctx context.Context) (current, want int64, err error) {
	err = db.withProvider(ctx, func(p *goose.Provider) (err error) {
		current, want, err = p.GetVersions(ctx)
		return err
	})
	return current, want, db.explain("read the schema's version", err)
}

// Migrate applies the migrations that are missing and returns how many those
// were. It may run while others use the tables only if they know both schemas.
// ErrSchema when the database has a newer one.
func (db *DB) Migrate(ctx context.Context) (applied int, err error) {
	err = db.withProvider(ctx, func(p *goose.Provider) error {
		current, want, err := p.GetVersions(ctx)
		if err != nil {
			return err
		}
		if current > want {
			return db.tooNew(current, want)
		}
		done, err := p.Up(ctx)
		applied = len(done)
		return err
	})
	return applied, db.explain("migrate", err)
}

// CheckSchema returns nil when the schema is the one that this program wants,
// and else an ErrSchema: ErrOldSchema when Migrate helps.
func (db *DB) CheckSchema(ctx context.Context) error {
	current, want, err := db.SchemaVersion(ctx)
	switch {
	case err != nil:
		return err
	case current > want:
		return db.tooNew(current, want)
	case current < want:
		return fmt.Errorf("%w: %s has version %d, this program wants %d: migrate it first", ErrOldSchema, db.place, current, want)
	}
	return nil
}

// tooNew is the ErrSchema of a database that a newer program has migrated.
func (db *DB) tooNew(current, want int64) error {
	return fmt.Errorf("%w: %s has version %d, this program knows %d: use a newer program", ErrSchema, db.place, current, want)
}
