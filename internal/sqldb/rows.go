package sqldb

import (
	"context"
	"database/sql"
	"strings"
)

const (
	// insertMost is the most rows that one INSERT writes.
	insertMost = 256
	// byKeyMost is the most rows that one statement of EachByKey looks up.
	byKeyMost = 64
)

// Chunk returns how many of left rows the next statement takes: most of them
// while there are so many, then powers of two. So few different texts are
// prepared.
func Chunk(left, most int) int {
	if left >= most {
		return most
	}
	n := 1
	for n*2 <= left {
		n *= 2
	}
	return n
}

// InsertRows writes rows of width arguments each. statement ends in VALUES and
// a space.
func (s *Session) InsertRows(ctx context.Context, statement string, args []any, width int) error {
	return s.UpsertRows(ctx, statement, "", args, width)
}

// InsertNewRows is InsertRows that leaves rows alone whose key is taken.
func (s *Session) InsertNewRows(ctx context.Context, statement string, args []any, width int) error {
	if s.KeepExisting != "" {
		return s.UpsertRows(ctx, statement, s.KeepExisting, args, width)
	}
	// A statement of several rows would fail as a whole for one row that
	// exists.
	row := "(" + Repeat("?", width) + ")"
	for ; len(args) > 0; args = args[width:] {
		if _, err := s.InsertNew(ctx, statement+row, args[:width]...); err != nil {
			return err
		}
	}
	return nil
}

// UpsertRows is InsertRows with an end of the statement, which says what
// becomes of rows that exist.
func (s *Session) UpsertRows(ctx context.Context, statement, end string, args []any, width int) error {
	row := "(" + Repeat("?", width) + ")"
	for len(args) > 0 {
		n := Chunk(len(args)/width, insertMost)
		if _, err := s.Exec(ctx, statement+Repeat(row, n)+end, args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// EachByKey calls scan for each row that has one of the keys, in any order. one
// is the statement for a single key, by all columns of a unique index. The keys
// are looked up by a UNION of such statements: given a list, a database that
// does not know yet how large the table is would read all of it.
func (s *Session) EachByKey(ctx context.Context, one string, keys [][]any, scan func(*sql.Rows) error) error {
	for len(keys) > 0 {
		n := Chunk(len(keys), byKeyMost)
		var args []any
		for _, key := range keys[:n] {
			args = append(args, key...)
		}
		statement := strings.TrimSuffix(strings.Repeat(one+" UNION ALL ", n), " UNION ALL ")
		if err := s.Each(ctx, statement, args, scan); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// List returns the rows of a statement, each read by scan; nil when there are
// none.
func List[T any](ctx context.Context, s *Session, statement string, args []any, scan func(*sql.Rows, *T) error) ([]T, error) {
	var found []T
	err := s.Each(ctx, statement, args, func(rows *sql.Rows) error {
		var row T
		found = append(found, row)
		return scan(rows, &found[len(found)-1])
	})
	return found, err
}

// One reads the first row of a statement into row; the error is none when there
// is no row.
func One[T any](ctx context.Context, s *Session, statement string, args []any, none error, row *T, scan func(*sql.Rows, *T) error) error {
	empty := true
	err := s.Each(ctx, statement, args, func(rows *sql.Rows) error {
		if !empty {
			return nil
		}
		empty = false
		return scan(rows, row)
	})
	if err == nil && empty {
		err = none
	}
	return err
}

// ReadList is List in a call of its own.
func ReadList[T any](ctx context.Context, db *DB, op, statement string, args []any, scan func(*sql.Rows, *T) error) ([]T, error) {
	return Result(ctx, db.Read, op, func(s *Session) ([]T, error) { return List(ctx, s, statement, args, scan) })
}

// ReadOne is One in a call of its own.
func ReadOne[T any](ctx context.Context, db *DB, op, statement string, args []any, none error, scan func(*sql.Rows, *T) error) (*T, error) {
	return Result(ctx, db.Read, op, func(s *Session) (*T, error) {
		row := new(T)
		return row, One(ctx, s, statement, args, none, row, scan)
	})
}

// Scan1 reads a row of one column; it is a scan for List.
func Scan1[T any](rows *sql.Rows, column *T) error { return rows.Scan(column) }

// Do runs a statement where it does not matter how many rows it changes.
func (s *Session) Do(ctx context.Context, statement string, args ...any) error {
	_, err := s.Exec(ctx, statement, args...)
	return err
}

// DoOne runs a statement that has to change one row. It returns wrong when none is
// changed, or several.
func (s *Session) DoOne(ctx context.Context, wrong error, statement string, args ...any) error {
	n, err := s.Exec(ctx, statement, args...)
	if err == nil && n != 1 {
		err = wrong
	}
	return err
}

// Do is Session.Do in a transaction of its own.
func (db *DB) Do(ctx context.Context, op, statement string, args ...any) error {
	return db.Write(ctx, op, func(s *Session) error { return s.Do(ctx, statement, args...) })
}

// DoOne is Session.DoOne in a transaction of its own.
func (db *DB) DoOne(ctx context.Context, op string, wrong error, statement string, args ...any) error {
	return db.Write(ctx, op, func(s *Session) error { return s.DoOne(ctx, wrong, statement, args...) })
}

// ReadRow is Session.Row in a call of its own.
func (db *DB) ReadRow(ctx context.Context, op, statement string, args []any, dest ...any) error {
	return db.Read(ctx, op, func(s *Session) error { return s.Row(ctx, statement, args, dest...) })
}

// Get runs a statement that returns one value. The error is sql.ErrNoRows when
// there is no row.
func Get[T any](ctx context.Context, s *Session, statement string, args ...any) (value T, err error) {
	err = s.Row(ctx, statement, args, &value)
	return value, err
}

// Result runs f by one of the DB's methods, such as DB.Write, and returns what
// its last run returned; the zero value beside an error.
func Result[T any](
	ctx context.Context, run func(context.Context, string, func(*Session) error) error, op string, f func(*Session) (T, error),
) (T, error) {
	var result, none T
	err := run(ctx, op, func(s *Session) (err error) {
		result, err = f(s)
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}
