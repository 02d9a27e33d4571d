package strategies_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lab/strategies"
)

// theRedis are the servers of these tests, by level; all levels that need no
// disk are on one.
var theRedis = map[string]*servers.Redis{}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dibs-strategies-")
	if err == nil {
		err = startRedis(dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	for _, r := range theRedis {
		r.Kill()
	}
	if err := errors.Join(err, servers.StopAll(), os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func startRedis(dir string) error {
	for name, args := range map[string][]string{"": nil, "always": servers.RedisAlways} {
		at := filepath.Join(dir, "redis"+name)
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		r, err := servers.StartRedis(at, args...)
		if err != nil {
			return err
		}
		theRedis[name] = r
	}
	return nil
}

var databases = map[string]func() (*servers.Server, error){"mariadb": servers.MariaDB, "postgres": servers.Postgres}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world makes an empty world on one of the databases.
func world(t *testing.T, database string, s *strategies.Strategy, stock int64) *strategies.World {
	t.Helper()
	_, url, _ := servers.Database(t, databases[database])
	w := &strategies.World{Stock: stock, Dir: t.TempDir(), LedgerURL: url, Over: make(chan struct{})}
	redis := theRedis[""]
	if s.Level == dibs.LevelDurable || s.Level == dibs.LevelRelaxed {
		redis = theRedis["always"]
	}
	w.RedisURL = redis.URL()
	var err error
	w.SQL, err = strategies.OpenSQL(url, 16)
	must(t, err)
	w.Redis, err = strategies.OpenRedis(w.RedisURL)
	must(t, err)
	must(t, w.Redis.Flush(t.Context()))
	t.Cleanup(func() {
		w.Redis.Close()
		must(t, w.SQL.Close())
	})
	return w
}

// sold is what a sale came to.
type sold struct {
	outcomes                    map[strategies.Outcome]int64
	orders, duplicates, unkept  int64
	oversold, undersold, demand int64
}

// sell lets each user press so often, all at once, and counts the orders.
func sell(t *testing.T, s *strategies.Strategy, w *strategies.World, users, presses int) sold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a, err := s.Open(ctx, w)
	must(t, err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	r := sold{outcomes: map[strategies.Outcome]int64{}, demand: int64(users)}
	if !s.PerUser {
		r.demand *= int64(presses)
	}
	yes := map[string]int64{}
	for i := range users * presses {
		wg.Go(func() {
			user := fmt.Sprint(10_000_000 + i/presses)
			out, err := a.Claim(ctx, user)
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			r.outcomes[out]++
			if out == strategies.Granted {
				yes[user]++
			}
		})
	}
	wg.Wait()
	must(t, a.Finish(ctx))
	var orders map[string]int64
	if d, ok := a.(*strategies.Dibs); ok {
		orders, err = d.Orders(ctx)
		must(t, errors.Join(err, d.Close(ctx)))
	} else {
		orders, err = w.SQL.Orders(ctx)
		must(t, err)
	}
	for user, n := range orders {
		r.orders += n
		r.duplicates += n - 1
		yes[user] -= n
	}
	for _, n := range yes {
		r.unkept += max(0, n)
	}
	r.oversold, r.undersold = max(0, r.orders-w.Stock), max(0, min(w.Stock, r.demand)-r.orders)
	return r
}

// TestSafe lets a crowd press, each user three times, more than there is: all
// is sold, once, to one user at most, and every yes is an order.
func TestSafe(t *testing.T) {
	for database := range databases {
		for _, s := range strategies.All() {
			// dibs has tests of its own on each database, elsewhere.
			if !s.Safe() || s.Level == dibs.LevelReplicated || s.Idea == "dibs" && database != "mariadb" {
				continue
			}
			t.Run(database+"/"+s.Name, func(t *testing.T) {
				w := world(t, database, &s, 10)
				r := sell(t, &s, w, 20, 3)
				if s.PerUser && r.duplicates > 0 || r.oversold > 0 || r.unkept > 0 || r.undersold > 0 {
					t.Errorf("it sold %+v", r)
				}
			})
		}
	}
}

// TestFailedOrdersGiveBack lets the database refuse an order after its unit was taken in
// Redis: unit and lock are free again, and everything is sold to others.
func TestFailedOrdersGiveBack(t *testing.T) {
	for _, name := range []string{"hash-lock-repaired", "cached-stock"} {
		s := named(t, name)
		for database := range databases {
			t.Run(database+"/"+name, func(t *testing.T) {
				w := world(t, database, &s, 2)
				a, err := s.Open(t.Context(), w)
				must(t, err)
				// The column for users has 64 characters.
				tooLong := strings.Repeat("9", 65)
				for range 3 {
					if out, err := a.Claim(t.Context(), tooLong); out != strategies.Busy || err == nil {
						t.Fatalf("an order that fails: %v, %v", out, err)
					}
				}
				for _, user := range []string{"1", "2"} {
					if out, err := a.Claim(t.Context(), user); out != strategies.Granted || err != nil {
						t.Errorf("user %s: %v, %v", user, out, err)
					}
				}
				if out, err := a.Claim(t.Context(), "3"); out != strategies.SoldOut || err != nil {
					t.Errorf("a third of two: %v, %v", out, err)
				}
				must(t, a.Finish(t.Context()))
				orders, err := w.SQL.Orders(t.Context())
				if err != nil || len(orders) != 2 {
					t.Errorf("the orders are %v, %v", orders, err)
				}
			})
		}
	}
}

// TestUnsafe lets two callers meet where a strategy's flaw is, which shows it
// every time.
func TestUnsafe(t *testing.T) {
	for _, c := range []struct {
		strategy       string
		users, presses int
		stock          int64
		want           func(r sold) int64
	}{
		{"naive", 2, 1, 1, func(r sold) int64 { return r.oversold }},
		{"naive", 1, 2, 2, func(r sold) int64 { return r.duplicates }},
		{"by-equality", 2, 1, 2, func(r sold) int64 { return r.undersold }},
		{"check-then-buy", 1, 2, 2, func(r sold) int64 { return r.duplicates }},
		{"local-lock-early", 1, 2, 2, func(r sold) int64 { return r.duplicates }},
		{"local-lock-nodes", 1, 2, 2, func(r sold) int64 { return r.duplicates }},
		{"hash-lock", 1, 2, 2, func(r sold) int64 { return r.unkept }},
	} {
		s := named(t, c.strategy)
		for database := range databases {
			t.Run(database+"/"+c.strategy, func(t *testing.T) {
				w := world(t, database, &s, c.stock)
				m := meeting{of: 2, both: make(chan struct{}), leave: strategies.AfterRead}
				if c.strategy == "local-lock-early" {
					// The second reads when the first has given the lock back.
					m.leave = strategies.AfterUnlock
				}
				w.At = m.at
				if r := sell(t, &s, w, c.users, c.presses); c.want(r) != 1 {
					t.Errorf("its flaw does not show: %+v", r)
				}
			})
		}
	}
}

// TestFlawsAreTested keeps the list of TestUnsafe whole.
func TestFlawsAreTested(t *testing.T) {
	var unsafe []string
	for _, s := range strategies.All() {
		if !s.Safe() {
			unsafe = append(unsafe, s.Name)
		}
	}
	if want := []string{"naive", "by-equality", "check-then-buy", "local-lock-early", "local-lock-nodes", "hash-lock"}; !slices.Equal(unsafe, want) {
		t.Errorf("the unsafe strategies are %v, tested are %v", unsafe, want)
	}
}

func named(t *testing.T, name string) strategies.Strategy {
	t.Helper()
	all := strategies.All()
	at := slices.IndexFunc(all, func(s strategies.Strategy) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("there is no strategy %s", name)
	}
	return all[at]
}

// meeting lets callers wait, at the place where they leave, until so many have
// read.
type meeting struct {
	of    int64
	read  atomic.Int64
	both  chan struct{}
	leave string
}

func (m *meeting) at(ctx context.Context, place string) {
	if place == strategies.AfterRead && m.read.Add(1) == m.of {
		close(m.both)
	}
	if place == m.leave {
		select {
		case <-m.both:
		case <-ctx.Done():
		}
	}
}
