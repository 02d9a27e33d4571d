package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestChunk(t *testing.T) {
	for left, want := range map[int]int{1: 1, 2: 2, 3: 2, 7: 4, 99: 64, 100: 100, 101: 100, 5000: 100} {
		if got := Chunk(left, 100); got != want {
			t.Errorf("of %d rows the next statement takes %d", left, got)
		}
	}
}

// TestManyRows writes more rows than one statement holds, some of them again,
// and looks them up by their keys.
func TestManyRows(t *testing.T) {
	eachKind(t, func(t *testing.T, url string) {
		db := openTest(t, url, Config{})
		const most = 2*insertMost + 3
		rows := func(from, to int) (args []any) {
			for i := from; i < to; i++ {
				args = append(args, fmt.Sprintf("thing %d", i), from)
			}
			return args
		}
		const into = `INSERT INTO things (id, n) VALUES `
		write := func(f func(s *Session) error) error { return db.Write(t.Context(), "write", f) }
		noError(t, write(func(s *Session) error { return s.InsertRows(t.Context(), into, rows(0, most), 2) }))
		noError(t, write(func(s *Session) error { return s.InsertNewRows(t.Context(), into, rows(most-10, most+10), 2) }))
		if err := write(func(s *Session) error { return s.InsertRows(t.Context(), into, rows(most+9, most+20), 2) }); err == nil {
			t.Error("a row was inserted twice")
		}
		if n, err := count(t, db); err != nil || n != most+10 {
			t.Errorf("%d rows: %v", n, err)
		}
		var keys [][]any
		for i := range 100 {
			keys = append(keys, []any{fmt.Sprintf("thing %d", 6*i)})
		}
		var first, second int
		noError(t, db.Read(t.Context(), "look up", func(s *Session) error {
			return s.EachByKey(t.Context(), `SELECT id, n FROM things WHERE id = ?`, keys, func(rows *sql.Rows) error {
				var id string
				var n int
				if err := rows.Scan(&id, &n); err != nil {
					return err
				}
				if n == 0 {
					first++
				} else {
					second++
				}
				return nil
			})
		}))
		if first != 86 || second != 2 {
			t.Errorf("found %d and %d rows", first, second)
		}
	})
}

// TestOneAndList: a list is in the statement's order; no row is the caller's
// error.
func TestOneAndList(t *testing.T) {
	db := openTest(t, fileAddress(t), Config{})
	for i, id := range []string{"b", "a", "c"} {
		noError(t, insert(t, db, id, i))
	}
	list, err := ReadList(t.Context(), db, "list", `SELECT id FROM things ORDER BY id`, nil, Scan1[string])
	if err != nil || !slices.Equal(list, []string{"a", "b", "c"}) {
		t.Errorf("the list is %q, %v", list, err)
	}
	none := errors.New("none")
	if one, err := ReadOne(t.Context(), db, "read", `SELECT n FROM things ORDER BY id`, nil, none, Scan1[int]); err != nil || *one != 1 {
		t.Errorf("the first is %v, %v", one, err)
	}
	if _, err := ReadOne(t.Context(), db, "read", `SELECT n FROM things WHERE id = ?`, []any{"d"}, none, Scan1[int]); !errors.Is(err, none) {
		t.Errorf("no row: %v", err)
	}
}
