package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// ErrSchema: the database holds an older or a newer schema than this program
// wants.
var ErrSchema = errors.New("sqlledger: the schema does not fit this program")

// errOld is the ErrSchema that migrating mends.
var errOld = fmt.Errorf("%w: it is older", ErrSchema)

// withProvider lends f the migrations on a connection of their own.
func (d *dialect) withProvider(ctx context.Context, place string, f func(*goose.Provider) error) error {
	db, err := d.open(place, forWriting)
	if err != nil {
		return err
	}
	return errors.Join(d.provide(ctx, db, f), db.Close())
}

func (d *dialect) provide(ctx context.Context, db *sql.DB, f func(*goose.Provider) error) error {
	files, err := d.sources()
	if err != nil {
		return err
	}
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if d.server != nil {
		opts = append(opts, goose.WithTableName(d.applied))
	}
	p, err := goose.NewProvider(d.goose, db, files, opts...)
	if err != nil {
		return err
	}
	if d.server == nil {
		return f(p)
	}
	// Even looking makes the table of versions when it is missing.
	return d.server.locks.alone(ctx, db, migrateLock, func(conn *sql.Conn) error {
		if err := d.ensureVersions(ctx, conn); err != nil {
			return err
		}
		return f(p)
	})
}

// ensureVersions makes the table of versions, and says at once when it cannot:
// goose would try for seconds.
func (d *dialect) ensureVersions(ctx context.Context, conn *sql.Conn) error {
	store, err := database.NewStore(d.goose, d.applied)
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

// versions reads the schema's version and the one that this program wants.
func (d *dialect) versions(ctx context.Context, place string) (current, want int64, err error) {
	err = d.withProvider(ctx, place, func(p *goose.Provider) (err error) {
		current, want, err = p.GetVersions(ctx)
		return err
	})
	return current, want, d.explain("read the schema's version", err)
}

// migrate applies what is missing and returns how many migrations that were.
func (d *dialect) migrate(ctx context.Context, place string) (applied int, err error) {
	err = d.withProvider(ctx, place, func(p *goose.Provider) error {
		current, want, err := p.GetVersions(ctx)
		if err != nil {
			return err
		}
		if current > want {
			return tooNew(place, current, want)
		}
		done, err := p.Up(ctx)
		applied = len(done)
		return err
	})
	return applied, d.explain("migrate", err)
}

// ready makes sure that the schema is the wanted one.
func (d *dialect) ready(ctx context.Context, place string, opts Options) error {
	if opts.AnySchema {
		return nil
	}
	current, want, err := d.versions(ctx, place)
	switch {
	case err != nil:
		return err
	case current > want:
		return tooNew(place, current, want)
	case current == want:
		return nil
	case !opts.Migrate:
		return fmt.Errorf("%w: %s has version %d, this program wants %d: migrate it first", errOld, place, current, want)
	}
	_, err = d.migrate(ctx, place)
	return err
}

func tooNew(place string, current, want int64) error {
	return fmt.Errorf("%w: %s has version %d, this program knows %d: use a newer program", ErrSchema, place, current, want)
}
