package idgen_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/servers"
)

var theRedis *servers.Redis

// childOf makes the test binary print ids of a kind, from the Redis there.
const childOf, childKind = "IDGEN_TEST_CHILD", "IDGEN_TEST_KIND"

func TestMain(m *testing.M) {
	if url := os.Getenv(childOf); url != "" {
		if err := child(url, os.Getenv(childKind)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "dibs-idgen-")
	if err == nil {
		theRedis, err = servers.StartRedis(dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
		theRedis.Kill()
	}
	if err := errors.Join(err, servers.StopAll(), os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const perChild = 3_000

func child(url, kind string) error {
	ctx := context.Background()
	next, done, err := makers[kind](ctx, url)
	if err != nil {
		return err
	}
	defer done()
	out := bufio.NewWriter(os.Stdout)
	for range perChild {
		id, err := next(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, id)
	}
	return out.Flush()
}

// makers make ids of each kind from a Redis.
var makers = map[string]func(ctx context.Context, url string) (next func(context.Context) (int64, error), done func(), err error){
	"daily": func(_ context.Context, url string) (func(context.Context) (int64, error), func(), error) {
		c, err := idgen.OpenRedisCounter(url, "")
		if err != nil {
			return nil, nil, err
		}
		d, err := idgen.NewDaily(c, "processes", 700, nil)
		return d.Next, func() { d.Close(); c.Close() }, err
	},
	"sequence": func(_ context.Context, url string) (func(context.Context) (int64, error), func(), error) {
		c, err := idgen.OpenRedisCounter(url, "")
		if err != nil {
			return nil, nil, err
		}
		s, err := idgen.NewSequence(c, "sequence", 700)
		return s.Next, c.Close, err
	},
	"snowflake": func(ctx context.Context, url string) (func(context.Context) (int64, error), func(), error) {
		s, err := idgen.OpenSnowflake(ctx, url, "", time.Minute, nil)
		if err != nil {
			return nil, nil, err
		}
		return func(context.Context) (int64, error) { return s.Next() }, s.Close, nil
	},
}

// TestProcesses lets ten processes make ids at once: each rises, and no two are
// alike.
func TestProcesses(t *testing.T) {
	for kind := range makers {
		t.Run(kind, func(t *testing.T) {
			const processes = 10
			lists := make([][]int64, processes)
			var wg sync.WaitGroup
			for i := range processes {
				wg.Go(func() {
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), childOf+"="+theRedis.URL(), childKind+"="+kind)
					cmd.Stderr = os.Stderr
					out, err := cmd.Output()
					if err != nil {
						t.Error(err)
					}
					for line := range strings.Lines(string(out)) {
						id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
						if err != nil {
							t.Error(err)
							return
						}
						lists[i] = append(lists[i], id)
					}
				})
			}
			wg.Wait()
			seen := map[int64]bool{}
			for _, list := range lists {
				if len(list) != perChild || !slices.IsSorted(list) {
					t.Errorf("a process made %d ids, in order: %t", len(list), slices.IsSorted(list))
				}
				for _, id := range list {
					if id <= 0 || seen[id] {
						t.Fatalf("the id %d is not new", id)
					}
					seen[id] = true
				}
			}
		})
	}
}

// hand is a clock that a test sets.
type hand struct{ at atomic.Int64 }

func (h *hand) set(at time.Time) { h.at.Store(at.UnixNano()) }
func (h *hand) now() time.Time   { return time.Unix(0, h.at.Load()) }
func handAt(at time.Time) *hand  { h := &hand{}; h.set(at); return h }
func second(id int64) time.Time  { at, _ := idgen.DailyTime(id); return at }
func awaitSecond(t *testing.T, d *idgen.Daily, at time.Time) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		id, err := d.Next(ctx)
		must(t, err)
		if !second(id).Before(at) {
			return id
		}
		if ctx.Err() != nil {
			t.Fatalf("the clock stays at %s", second(id))
		}
	}
}

// TestDailyClock turns the clock of a process over midnight and back, and starts
// another one on the earlier day.
func TestDailyClock(t *testing.T) {
	c, err := idgen.OpenRedisCounter(theRedis.URL(), "clock-"+rand.Text()+":")
	must(t, err)
	defer c.Close()
	ctx := t.Context()
	evening := time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC)
	clock := handAt(evening)
	d, err := idgen.NewDaily(c, "clock", 10, clock.now)
	must(t, err)
	defer d.Close()
	first, err := d.Next(ctx)
	must(t, err)
	at, count := idgen.DailyTime(first)
	if !at.Equal(evening) || count != 1 {
		t.Errorf("the first id is of %s and has the count %d", at, count)
	}
	clock.set(evening.Add(time.Second))
	next := awaitSecond(t, d, evening.Add(time.Second))
	if _, count := idgen.DailyTime(next); count != 1 {
		t.Errorf("the day begins with the count %d", count)
	}
	clock.set(evening.Add(-time.Hour))
	last := next
	for range 100 {
		id, err := d.Next(ctx)
		must(t, err)
		if id <= last {
			t.Fatalf("with a clock that steps back %d comes after %d", id, last)
		}
		last = id
	}
	other, err := idgen.NewDaily(c, "clock", 10, clock.now)
	must(t, err)
	defer other.Close()
	again, err := other.Next(ctx)
	must(t, err)
	taken, err := d.Count(ctx, evening)
	must(t, err)
	if _, count := idgen.DailyTime(again); count <= 10 || int64(count) > taken {
		t.Errorf("a process of the earlier day begins with the count %d, taken are %d", count, taken)
	}
	if n, err := d.Count(ctx, evening.AddDate(1, 0, 0)); n != 0 || err != nil {
		t.Errorf("of a day to come %d are taken, %v", n, err)
	}
}

// TestSnowflakeClock leases, turns the clock back, and leases the same worker
// again: no id comes twice.
func TestSnowflakeClock(t *testing.T) {
	ctx := t.Context()
	clock := handAt(time.Now())
	_, err := theRedis.Do(ctx, "DEL", "clock:workers")
	must(t, err)
	open := func() *idgen.Snowflake {
		// Long enough for a machine that stands still for a while.
		s, err := idgen.OpenSnowflake(ctx, theRedis.URL(), "clock:", 5*time.Minute, clock.now)
		must(t, err)
		return s
	}
	s := open()
	seen := map[int64]bool{}
	last := int64(0)
	take := func(s *idgen.Snowflake) {
		for range 100 {
			id, err := s.Next()
			must(t, err)
			if seen[id] {
				t.Fatalf("the id %d comes twice", id)
			}
			seen[id] = true
			last = max(last, id)
		}
	}
	take(s)
	before := last
	clock.set(clock.now().Add(-time.Hour))
	take(s)
	if last <= before {
		t.Error("with a clock that steps back the ids do not rise")
	}
	first := s.Worker()
	other := open()
	if other.Worker() == first {
		t.Errorf("two have the worker %d", first)
	}
	take(other)
	other.Close()
	s.Close()
	// The lease ends; the same worker goes to the next one.
	field := strconv.FormatInt(first, 10)
	m, err := theRedis.Do(ctx, "HGET", "clock:workers", field)
	must(t, err)
	text, err := m.ToString()
	must(t, err)
	_, err = theRedis.Do(ctx, "HSET", "clock:workers", field, text[:strings.LastIndex(text, " ")]+" 0")
	must(t, err)
	s = open()
	if s.Worker() != first {
		t.Errorf("the worker %d goes to nobody, %d does", first, s.Worker())
	}
	take(s)
	s.Close()
}

// madeByTwo makes a counter while somebody else is making the table.
func madeByTwo(t *testing.T, db *sql.DB) {
	t.Helper()
	ctx := t.Context()
	db.SetMaxOpenConns(3)
	other, err := db.BeginTx(ctx, nil)
	must(t, err)
	_, err = other.ExecContext(ctx, "CREATE TABLE dibs_counters (name VARCHAR(200) PRIMARY KEY, n BIGINT NOT NULL)")
	must(t, err)
	made := make(chan error, 1)
	go func() {
		_, err := idgen.NewSQLCounter(ctx, db, true)
		made <- err
	}()
	for waiting := 0; waiting == 0 && len(made) == 0; {
		must(t, db.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'CREATE TABLE%'").Scan(&waiting))
	}
	must(t, other.Commit())
	must(t, <-made)
}

// TestSQLCounter counts in both databases.
func TestSQLCounter(t *testing.T) {
	for name, start := range map[string]func() (*servers.Server, error){"mariadb": servers.MariaDB, "postgres": servers.Postgres} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			server, _, database := servers.Database(t, start)
			db, err := server.Open(database)
			must(t, err)
			defer func() { must(t, db.Close()) }()
			if name == "postgres" {
				madeByTwo(t, db)
			}
			c, err := idgen.NewSQLCounter(ctx, db, name == "postgres")
			must(t, err)
			a, err := idgen.NewSequence(c, "orders", 3)
			must(t, err)
			b, err := idgen.NewSequence(c, "orders", 3)
			must(t, err)
			var got []int64
			for range 4 {
				x, err := a.Next(ctx)
				must(t, err)
				y, err := b.Next(ctx)
				must(t, err)
				got = append(got, x, y)
			}
			if want := []int64{1, 4, 2, 5, 3, 6, 7, 10}; !slices.Equal(got, want) {
				t.Errorf("they count %v, want %v", got, want)
			}
			if n, err := c.Taken(ctx, "orders"); n != 12 || err != nil {
				t.Errorf("taken are %d, %v", n, err)
			}
			if n, err := c.Taken(ctx, "nothing"); n != 0 || err != nil {
				t.Errorf("of nothing %d are taken, %v", n, err)
			}
		})
	}
}

// memory counts here.
type memory struct{ n atomic.Int64 }

func (m *memory) Take(_ context.Context, _ string, n int64) (int64, error) { return m.n.Add(n), nil }

func (m *memory) Taken(context.Context, string) (int64, error) { return m.n.Load(), nil }

// TestUsedUp refuses beyond the last count, and beyond the years.
func TestUsedUp(t *testing.T) {
	m := &memory{}
	m.n.Store(1<<32 - 3)
	d, err := idgen.NewDaily(m, "x", 1, nil)
	must(t, err)
	defer d.Close()
	for range 2 {
		_, err := d.Next(t.Context())
		must(t, err)
	}
	if _, err := d.Next(t.Context()); !errors.Is(err, idgen.ErrUsedUp) {
		t.Errorf("beyond the last count: %v", err)
	}
	for _, year := range []int{2021, 2091} {
		old, err := idgen.NewDaily(&memory{}, "x", 1, handAt(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)).now)
		must(t, err)
		_, err = old.Next(t.Context())
		old.Close()
		if year == 2091 && !errors.Is(err, idgen.ErrUsedUp) {
			t.Errorf("in %d: %v", year, err)
		}
	}
	for _, size := range []int64{0, 1 << 30} {
		if _, err := idgen.NewSequence(m, "x", size); err == nil {
			t.Errorf("blocks of %d are taken", size)
		}
		if _, err := idgen.NewDaily(m, "x", size, nil); err == nil {
			t.Errorf("blocks of %d are taken", size)
		}
	}
}

func TestUUID(t *testing.T) {
	last := ""
	for range 1000 {
		id, err := idgen.UUID()
		must(t, err)
		if len(id) != 36 || id[14] != '7' || id <= last {
			t.Fatalf("%s comes after %s", id, last)
		}
		last = id
	}
}
