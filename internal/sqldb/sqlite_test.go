package sqldb

import (
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite/vtab"
)

// plansCounted is an empty virtual table that counts how often SQLite asks it for a
// way to read it: as often as it compiles a statement that does.
type plansCounted struct{ plans *atomic.Int64 }

var (
	plans atomic.Int64
	// countPlans makes the table known to all connections of the process.
	countPlans = sync.OnceValue(func() error { return vtab.RegisterModule(nil, "plans_counted", plansCounted{&plans}) })
)

func (p plansCounted) Create(c vtab.Context, args []string) (vtab.Table, error) {
	return p.Connect(c, args)
}

func (p plansCounted) Connect(c vtab.Context, _ []string) (vtab.Table, error) {
	return p, c.Declare("CREATE TABLE counted (n INTEGER)")
}

func (p plansCounted) BestIndex(*vtab.IndexInfo) error {
	p.plans.Add(1)
	return nil
}
func (p plansCounted) Open() (vtab.Cursor, error) { return noRows{}, nil }
func (p plansCounted) Disconnect() error          { return nil }
func (p plansCounted) Destroy() error             { return nil }

// noRows is a cursor at the end.
type noRows struct{}

func (noRows) Filter(int, string, []vtab.Value) error { return nil }
func (noRows) Next() error                            { return nil }
func (noRows) Eof() bool                              { return true }
func (noRows) Column(int) (vtab.Value, error)         { return nil, nil }
func (noRows) Rowid() (int64, error)                  { return 0, nil }
func (noRows) Close() error                           { return nil }

// TestStatementsAreCompiledOnce: a page is read again and again by one compiled
// statement, whatever its length.
func TestStatementsAreCompiledOnce(t *testing.T) {
	db := openTest(t, fileAddress(t), Config{})
	if err := countPlans(); err != nil {
		t.Fatal(err)
	}
	plans.Store(0)
	err := db.Write(t.Context(), "count plans", func(s *Session) error {
		if _, err := s.conn.ExecContext(t.Context(), "CREATE VIRTUAL TABLE temp.counted USING plans_counted"); err != nil {
			return err
		}
		once := int64(0)
		for most := range 3 {
			rows, err := s.query(t.Context(), "SELECT n FROM counted WHERE n > ? ORDER BY n LIMIT ?", most, 10+most)
			if err != nil {
				return err
			}
			if err := rows.Close(); err != nil {
				return err
			}
			if once == 0 {
				once = plans.Load()
			}
		}
		if n := plans.Load(); n != once || n == 0 {
			t.Errorf("SQLite planned %d times for the first run, and %d times for three", once, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
