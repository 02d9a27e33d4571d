package experiments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	// The driver of a shop's database.
	_ "modernc.org/sqlite"

	"github.com/dibs-dev/dibs/internal/wait"
)

// shop is a database with the stock of one product, and the count of it in Redis: what
// the usual ways to sell in a rush are built on.
type shop struct {
	// The experiments' database, a file.
	db *sql.DB
	c  *conn
	// url and file are where both are, for another process; worker is its command.
	url, file string
	worker    []string
	// err is the first failure of the shop itself. After it no step does anything, and what an
	// experiment then says does not count.
	err error
}

// shopping makes an experiment that has a database too.
func shopping(name, claim string, do func(s *shop) (Seen, error)) Experiment {
	return Experiment{Group: Cache, Name: name, Claim: claim, run: func(ctx context.Context, b *bench) (seen Seen, err error) {
		b.starts++
		s, err := openShop(ctx, b.url, filepath.Join(b.dir, "shop"+strconv.Itoa(b.starts)+".db"))
		if err != nil {
			return seen, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		s.worker = b.worker
		s.exec(`CREATE TABLE stock (n INTEGER NOT NULL)`, `INSERT INTO stock VALUES (10)`)
		seen, err = do(s)
		if s.err != nil {
			return Seen{}, s.err
		}
		return seen, err
	}}
}

func openShop(ctx context.Context, url, file string) (*shop, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=synchronous(normal)")
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, url)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &shop{db: db, c: c, url: url, file: file}, nil
}

func (s *shop) close() error {
	s.c.close()
	return s.db.Close()
}

func (s *shop) exec(statements ...string) {
	for _, text := range statements {
		s.step(func(ctx context.Context) error {
			_, err := s.db.ExecContext(ctx, text)
			return err
		})
	}
}

// step does something, unless a step before it has failed.
func (s *shop) step(do func(ctx context.Context) error) {
	if s.err == nil {
		s.err = do(s.c.ctx)
	}
}

// left is the stock in the database.
func (s *shop) left() (n int) {
	s.step(func(ctx context.Context) error { return s.db.QueryRowContext(ctx, `SELECT n FROM stock`).Scan(&n) })
	return n
}

// set puts the stock of the database.
func (s *shop) set(n int) { s.exec(`UPDATE stock SET n = ` + strconv.Itoa(n)) }

// load reads the stock of the database into Redis, for a lifetime.
func (s *shop) load(life time.Duration) {
	n := strconv.Itoa(s.left())
	s.step(func(context.Context) error {
		return s.c.want("OK", "SET", "stock", n, "PX", strconv.FormatInt(life.Milliseconds(), 10))
	})
}

// takeScript takes one from a count that is there, and renews its lifetime in the same
// step; nothing for one that is gone.
const takeScript = `if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
	if tonumber(redis.call('GET', KEYS[1])) <= 0 then return -1 end
	if ARGV[1] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
	return redis.call('INCRBY', KEYS[1], -1)`

// take takes one by the script. A life of 0 leaves the lifetime as it is.
func (s *shop) take(life time.Duration) string {
	return s.c.do("EVAL", takeScript, "1", "stock", strconv.FormatInt(life.Milliseconds(), 10))
}

// lifetime is that of the counts: short, so that an experiment need not wait long for it.
const lifetime = 150 * time.Millisecond

// gone waits until a count's lifetime is over.
func (s *shop) gone() {
	s.step(func(ctx context.Context) error {
		for s.c.run("EXISTS stock") != "0" {
			if !wait.Sleep(ctx, 5*time.Millisecond) {
				return ctx.Err()
			}
		}
		return nil
	})
}

// cached are the experiments with a stock in Redis before a database.
func cached() []Experiment {
	return []Experiment{
		shopping("expires-between", "A key can expire between EXISTS and INCRBY, which then begins a new count; inside a script it cannot", expiresBetween),
		on(Cache, "incr-takes-one", "INCR takes a key alone: a script that gives it a number does not run; INCRBY takes the number", func(a, _ *conn) (Seen, error) {
			a.run("SET stock 10")
			broken := a.do("EVAL", `return redis.call('INCR', KEYS[1], ARGV[1])`, "1", "stock", "-1")
			right := a.do("EVAL", `return redis.call('INCRBY', KEYS[1], ARGV[1])`, "1", "stock", "-1")
			seen := Seen{Broken: "INCR with a number: " + first(broken), Right: "INCRBY -1: " + right}
			return seen, check(right == "9" && a.run("GET stock") == "9" && broken != "9", "%+v", seen)
		}),
		shopping("reload-race", "A count that is loaded by reading and then writing overwrites what was sold in between", reloadRace),
		shopping("stale-reload", "A count that expires before the database was written is loaded again as it was; a lifetime that each sale renews is not", staleReload),
		shopping("copied-back", "A count that is copied to the database some seconds later has lost those seconds when the count is gone", copiedBack),
		shopping("killed-before-message", "A process that dies between the count and the message has taken a unit that nobody gets", killedBeforeMessage),
		shopping("killed-after-message", "A process that sends the message first and dies before the count sells a unit that stays for sale", killedAfterMessage),
		shopping("killed-with-sum", "Deductions that are added up in a process die with it; while the count lives, the stock is read back from it", killedWithSum),
	}
}

func expiresBetween(s *shop) (seen Seen, err error) {
	s.load(time.Minute)
	there := s.c.run("EXISTS stock")
	s.c.run("PEXPIRE stock 20")
	s.gone()
	broken := s.c.run("INCRBY stock -1")
	forever := s.c.run("PTTL stock")
	// In a script time stands still: the key is there as long as the script runs.
	s.c.run("SET stock 10")
	slow := `redis.call('PEXPIRE', KEYS[1], 5)
		local before, i = redis.call('EXISTS', KEYS[1]), 0
		while i < tonumber(ARGV[1]) do i = i + 1 end
		return {before, redis.call('EXISTS', KEYS[1]), redis.call('INCRBY', KEYS[1], -1)}`
	began := time.Now()
	right := s.c.do("EVAL", slow, "1", "stock", "3000000")
	took := time.Since(began)
	seen = Seen{
		Broken: fmt.Sprintf("EXISTS %s, the lifetime ends, INCRBY: %s in place of 9, and no lifetime any more (PTTL %s)", there, broken, forever),
		Right:  fmt.Sprintf("a script of %d ms on a key with 5 ms to live: there before, there after, INCRBY: %s", took.Milliseconds(), right),
	}
	return seen, check(there == "1" && broken == "-1" && forever == "-1" && took > 5*time.Millisecond && right == "[1 1 9]", "%+v", seen)
}

func reloadRace(s *shop) (seen Seen, err error) {
	// One process misses, and reads 10. Before it writes, another one loads and sells 3.
	read := s.left()
	s.load(time.Minute)
	for range 3 {
		s.take(0)
	}
	sold := s.c.run("GET stock")
	s.c.run("SET stock " + strconv.Itoa(read))
	broken := s.c.run("GET stock")
	// NX: the count that is there stays.
	s.c.run("SET stock 7")
	refused := s.c.run("SET stock " + strconv.Itoa(read) + " NX")
	right := s.c.run("GET stock")
	seen = Seen{
		Broken: fmt.Sprintf("3 of 10 were sold and %s are left; the late load makes it %s: 3 are sold twice", sold, broken),
		Right:  fmt.Sprintf("SET NX: %s, and %s are left", refused, right),
	}
	return seen, check(sold == "7" && broken == "10" && refused == "(nil)" && right == "7", "%+v", seen)
}

func staleReload(s *shop) (seen Seen, err error) {
	sell := func(renew time.Duration) (sold int, count string) {
		s.set(10)
		s.load(lifetime)
		// Four sales, each after half a lifetime; the database is written at the end.
		for range 4 {
			if count = s.take(renew); count == "(nil)" {
				s.load(lifetime)
				count = s.take(renew)
			}
			sold++
			s.step(func(ctx context.Context) error {
				wait.Sleep(ctx, lifetime*6/10)
				return ctx.Err()
			})
		}
		s.exec(`UPDATE stock SET n = n - ` + strconv.Itoa(sold))
		return sold, count
	}
	sold, broken := sell(0)
	_, right := sell(10 * lifetime)
	left := s.left()
	seen = Seen{
		Broken: fmt.Sprintf("a lifetime that only runs down: after %d sales the count is %s in place of 6, since it was loaded anew between", sold, broken),
		Right:  fmt.Sprintf("renewed by each sale: the count is %s and the database has %d", right, left),
	}
	return seen, check(broken != "6" && right == "6" && left == 6, "%+v", seen)
}

func copiedBack(s *shop) (seen Seen, err error) {
	s.load(lifetime)
	for range 4 {
		s.take(0)
	}
	// The copy was to be made some seconds later, and the count is gone by then.
	s.gone()
	copied, broken := s.c.run("GET stock"), s.left()
	// A message for each sale names the sale, whatever becomes of the count.
	s.set(10)
	s.load(lifetime)
	for range 4 {
		s.take(0)
		s.c.run("RPUSH sales 1")
	}
	s.gone()
	for s.err == nil && s.c.run("LPOP sales") != "(nil)" {
		s.exec(`UPDATE stock SET n = n - 1`)
	}
	right := s.left()
	seen = Seen{
		Broken: fmt.Sprintf("4 of 10 were sold, the count to copy is %s, and the database still has %d", copied, broken),
		Right:  fmt.Sprintf("a message for each sale: the database has %d", right),
	}
	return seen, check(copied == "(nil)" && broken == 10 && right == 6, "%+v", seen)
}
