package sqldb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Open connects to a database at an address, as Check takes it, and does not
// look at the schema. A server is given four seconds to answer, and is refused
// when it does not keep what it commits or stands behind a pooler that shares
// connections. The folder and the file of a SQLite database are made, readable
// by their owner alone. No error shows a password.
func Open(ctx context.Context, address string, schema *Schema, c Config) (*DB, error) {
	address, err := absolute(address)
	if err != nil {
		return nil, err
	}
	db, err := newDB(address, schema, c)
	if err != nil {
		return nil, err
	}
	if db.server != nil {
		err = db.reach(ctx)
	} else {
		err = db.explain("open the file", prepareFile(ctx, db.place, schema.File))
	}
	if err != nil {
		return nil, err
	}
	if db.writers, err = db.newPool(forWriting, db.config.Writers); err != nil {
		return nil, err
	}
	if db.readers, err = db.newPool(forReading, db.config.Readers); err != nil {
		return nil, errors.Join(err, db.writers.close())
	}
	if db.server != nil {
		if db.watch, err = db.newPool(forWriting, 1); err != nil {
			return nil, errors.Join(err, db.readers.close(), db.writers.close())
		}
	}
	if schema.Owned {
		db.lock = db.newLock()
	}
	return db, nil
}

// newDB reads an address and completes the configuration. It opens nothing.
func newDB(address string, schema *Schema, c Config) (*DB, error) {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Readers, c.Writers = max(c.Readers, 1), max(c.Writers, 1)
	d, place, err := parse(address, schema.File, c.Timeout)
	if err != nil {
		return nil, err
	}
	if d.server == nil {
		c.Writers = 1
	} else if c.Login != nil {
		d.server.login = func() *url.Userinfo { return c.Login(address) }
	}
	return &DB{Dialect: d, place: place, schema: schema, config: c}, nil
}

// newPool makes a pool of size sessions of the database.
func (db *DB) newPool(use usage, size int) (*pool, error) {
	p, err := newPool(db.Dialect, use, size, db.config.Timeout, db.config.Now)
	if err != nil {
		return nil, err
	}
	for _, s := range p.idle {
		s.Codes = db.config.Codes
	}
	return p, nil
}

// reach makes sure that the server answers, lets this process in, and keeps
// what it commits.
func (db *DB) reach(ctx context.Context) error {
	if err := db.screen(ctx); err != nil {
		return db.explain("connect to "+db.place, err)
	}
	p, err := db.newPool(forReading, 1)
	if err != nil {
		return err
	}
	s, err := p.take(ctx)
	if err == nil {
		err = errors.Join(s.call.late(db.server.check(s.within(ctx), s.conn)), p.give(s))
	}
	if err := errors.Join(err, p.close()); err != nil {
		return db.explain("connect to "+db.place, err)
	}
	return db.explain("keep the "+db.schema.Name+" in "+db.place, db.ownable())
}

// screen asks what answers at the address, on connections of its own and
// without changing their settings: behind some poolers, these are other
// clients' connections later. The error is an errUnfit, or why there is no
// answer.
func (db *DB) screen(ctx context.Context) error {
	conn, err := db.open(forReading)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	err = noAnswer(ctx, within, db.server.screen(within, conn, db.server))
	return errors.Join(err, conn.Close())
}

// ownable refuses a schema that is Owned where its lock would be one server's
// alone: by two servers, two processes could both own it.
func (db *DB) ownable() error {
	if !db.schema.Owned || !db.server.galera.Load() {
		return nil
	}
	return fmt.Errorf("%w: it is one of a Galera cluster, whose locks (GET_LOCK) are each server's own, so that two processes could "+
		"write the %s: %s", errUnfit, db.schema.Name, db.schema.ClusterAdvice)
}

// newLock returns the lock of an Owned schema. Beside a file it is another
// file, named like it with `.lock` at the end.
func (db *DB) newLock() lock {
	if db.server == nil {
		return &fileLock{path: db.place + ".lock"}
	}
	l := &serverLock{writers: db.writers, locks: &db.server.locks, name: db.schema.Name, fenced: db.config.Fenced, every: touchEvery}
	db.writers.greet = l.greet
	return l
}
