package idgen

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/sqltable"
)

// Counter counts up by name, for many processes at once. It never gives a number
// twice.
type Counter interface {
	// Take takes n numbers and returns the last of them; the first ever is 1.
	Take(ctx context.Context, name string, n int64) (last int64, err error)
	// Taken is how many were taken; 0 for a name that is not known.
	Taken(ctx context.Context, name string) (int64, error)
}

// RedisCounter counts in Redis by INCRBY. It is as lasting as that Redis: one
// that may forget (appendfsync everysec, a failover) may give numbers twice.
type RedisCounter struct {
	c      rueidis.Client
	prefix string
}

var _ Counter = (*RedisCounter)(nil)

// OpenRedisCounter connects to redis://…; prefix begins every key, and is "ids:"
// when it is empty.
func OpenRedisCounter(url, prefix string) (*RedisCounter, error) {
	c, err := openRedis(url)
	if err != nil {
		return nil, err
	}
	return &RedisCounter{c, cmp.Or(prefix, "ids:")}, nil
}

func openRedis(url string) (rueidis.Client, error) {
	opt, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, errors.New("idgen: the address of Redis is none that Redis has")
	}
	// A command whose answer is lost would leave a gap when it ran again.
	opt.DisableCache, opt.DisableRetry = true, true
	c, err := rueidis.NewClient(opt)
	return c, failed("connecting to Redis", err)
}

// failed says what failed; nil for nil.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("idgen: %s: %w", doing, err)
}

// Close ends the connection.
func (r *RedisCounter) Close() { r.c.Close() }

// Take implements Counter.
func (r *RedisCounter) Take(ctx context.Context, name string, n int64) (int64, error) {
	last, err := r.c.Do(ctx, r.c.B().Incrby().Key(r.prefix+name).Increment(n).Build()).AsInt64()
	return last, failed("counting in Redis", err)
}

// Taken implements Counter.
func (r *RedisCounter) Taken(ctx context.Context, name string) (int64, error) {
	n, err := r.c.Do(ctx, r.c.B().Get().Key(r.prefix+name).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	return n, failed("reading a count in Redis", err)
}

// SQLCounter counts in a table of a database, dibs_counters: a sequence that
// MySQL, PostgreSQL and SQLite have alike, and as lasting as the database.
type SQLCounter struct {
	db       *sql.DB
	postgres bool
}

var _ Counter = (*SQLCounter)(nil)

// NewSQLCounter makes the table when it is not there. postgres says which
// dialect the database has: PostgreSQL's and SQLite's, or MySQL's.
func NewSQLCounter(ctx context.Context, db *sql.DB, postgres bool) (*SQLCounter, error) {
	err := sqltable.Make(ctx, db, "CREATE TABLE IF NOT EXISTS dibs_counters (name VARCHAR(200) PRIMARY KEY, n BIGINT NOT NULL)")
	return &SQLCounter{db, postgres}, failed("making the table of counters", err)
}

// Take implements Counter.
func (c *SQLCounter) Take(ctx context.Context, name string, n int64) (last int64, err error) {
	if c.postgres {
		err = c.db.QueryRowContext(ctx, "INSERT INTO dibs_counters (name, n) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = dibs_counters.n + $2 RETURNING n", name, n).Scan(&last)
	} else {
		var r sql.Result
		// LAST_INSERT_ID carries the new value back on the same connection.
		r, err = c.db.ExecContext(ctx, "INSERT INTO dibs_counters (name, n) VALUES (?, LAST_INSERT_ID(?)) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + ?)", name, n, n)
		if err == nil {
			last, err = r.LastInsertId()
		}
	}
	return last, failed("counting in the database", err)
}

// Taken implements Counter.
func (c *SQLCounter) Taken(ctx context.Context, name string) (n int64, err error) {
	mark := "?"
	if c.postgres {
		mark = "$1"
	}
	err = c.db.QueryRowContext(ctx, "SELECT n FROM dibs_counters WHERE name = "+mark, name).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}
