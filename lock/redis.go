package lock

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

//go:embed lua/acquire.lua
var acquireText string

//go:embed lua/release.lua
var releaseText string

//go:embed lua/renew.lua
var renewText string

var (
	acquireScript = rueidis.NewLuaScript(acquireText)
	releaseScript = rueidis.NewLuaScript(releaseText)
	renewScript   = rueidis.NewLuaScript(renewText)
)

// RedisConfig configures a locker on one Redis, Sentinel or Cluster.
type RedisConfig struct {
	// URL is where Redis is, as redis://host:6379/0, rediss:// for TLS; further
	// addresses by ?addr=, a Sentinel set by ?master_set=. Required.
	URL string
	// Prefix begins every key; empty means "lock:".
	Prefix string
	// Lifetime is how long a lock outlives a holder that is not heard of. 0 means
	// ten seconds, at least 100 ms; it is renewed three times in that time. Who
	// waits and is not heard of for as long is passed over, and who is handed the
	// lock has a tenth of it to answer.
	Lifetime time.Duration
}

// Limits and defaults of lifetimes.
// A tenth of the shortest lifetime would be less than one answer of a busy process:
// hence the least grace.
const (
	defaultLifetime = 10 * time.Second
	leastLifetime   = 100 * time.Millisecond
	leastGrace      = 250 * time.Millisecond
)

// grace is how long who is handed the lock has to answer.
func (c *RedisConfig) grace() time.Duration {
	return min(max(c.Lifetime/10, leastGrace), c.Lifetime)
}

func (c *RedisConfig) prepare() error {
	c.Prefix = cmp.Or(c.Prefix, "lock:")
	c.Lifetime = cmp.Or(c.Lifetime, defaultLifetime)
	if c.Lifetime < leastLifetime {
		return fmt.Errorf("lock: RedisConfig.Lifetime must be %s or more, not %s", leastLifetime, c.Lifetime)
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		return errors.New("lock: RedisConfig.Prefix has braces")
	}
	return nil
}

// Redis gives locks that are kept in one Redis. When its master fails over,
// what the replica had not heard of is lost: a lock may then be held twice for
// its lifetime, which the fence tells apart. Majority needs no replica.
//
// Tokens are unique among all lockers: id is random, and seq counts the attempts of
// this one.
type Redis struct {
	cfg    RedisConfig
	c      rueidis.Client
	id     string
	seq    atomic.Uint64
	line   listener
	owners owners
	open   openLocks
}

var _ Locker = (*Redis)(nil)

// OpenRedis connects.
func OpenRedis(cfg RedisConfig) (*Redis, error) {
	if err := cfg.prepare(); err != nil {
		return nil, err
	}
	opt, err := rueidis.ParseURL(cfg.URL)
	if err != nil {
		return nil, errors.New("lock: RedisConfig.URL is none that Redis has")
	}
	// A script whose answer is lost must not run again by itself.
	opt.DisableCache, opt.DisableRetry = true, true
	// One connection keeps the order: a request that came after its own release would take
	// the lock for nobody, until its lifetime is over.
	opt.PipelineMultiplex = -1
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, fmt.Errorf("lock: connecting to Redis: %w", err)
	}
	r := &Redis{cfg: cfg, c: c, id: "lock-" + rand.Text()}
	r.line.start(c, r.id)
	return r, nil
}

// Close implements Locker.
func (r *Redis) Close() error {
	err := r.open.closeAll()
	r.line.close()
	r.c.Close()
	return err
}

// keys of a lock are in one slot.
func (r *Redis) keys(name string) []string {
	k := r.cfg.Prefix + "{" + name + "}"
	return []string{k, k + ":line", k + ":heard", k + ":readers"}
}

// attempt is one who takes a lock.
type attempt struct {
	r           *Redis
	keys        []string
	token, mode string
}

func (r *Redis) attempt(name string, shared bool) *attempt {
	a := &attempt{r: r, keys: r.keys(name), token: r.id + "." + strconv.FormatUint(r.seq.Add(1), 10), mode: "w"}
	if shared {
		a.mode = "r"
	}
	return a
}

// Lock implements Locker.
func (r *Redis) Lock(ctx context.Context, name string, o Options) (Held, error) {
	return r.owners.lock(ctx, name, o, r.take)
}

func (r *Redis) take(ctx context.Context, name string, o Options) (Held, error) {
	bounded, cancel, busy := waiting(ctx, &o)
	defer cancel()
	a := r.attempt(name, o.Shared)
	begun, fence, _, err := a.ask(bounded, false)
	if err == nil && fence == 0 {
		if o.Wait == NoWait {
			return nil, ErrBusy
		}
		begun, fence, err = a.stand(bounded)
	}
	if err != nil {
		// It may have taken the lock, or a place in the line.
		return nil, errors.Join(busy(err), a.leave())
	}
	return a.hold(ctx, fence, begun), nil
}

// ask asks, and once more when the time of the question is over before the context's:
// a process that was paused finds it so, though the answer may be there.
func (a *attempt) ask(ctx context.Context, stand bool) (begun time.Time, fence uint64, again time.Duration, err error) {
	for range 2 {
		begun = time.Now()
		fence, again, err = a.acquire(ctx, stand)
		if !errors.Is(err, context.DeadlineExceeded) || ended(ctx) != nil {
			break
		}
	}
	return begun, fence, again, err
}

// acquire asks once.
// An error does not say whether the lock was taken: the caller leaves.
func (a *attempt) acquire(ctx context.Context, stand bool) (fence uint64, again time.Duration, err error) {
	in := "0"
	if stand {
		in = "1"
	}
	// An answer that comes after the lifetime is worth nothing. And a call with a
	// deadline needs no other goroutine to watch for the context's end.
	ctx, cancel := context.WithTimeout(ctx, min(a.r.cfg.Lifetime, leaving))
	defer cancel()
	reply, err := acquireScript.Exec(ctx, a.r.c, a.keys,
		[]string{a.token, a.mode, millis(a.r.cfg.Lifetime), in, millis(a.r.cfg.Lifetime)}).AsIntSlice()
	if err != nil || len(reply) != 2 {
		return 0, 0, errors.Join(err, ctx.Err())
	}
	return uint64(reply[0]), time.Duration(reply[1]) * time.Millisecond, nil
}

// stand waits in line. It is woken when it is its turn, and asks by itself only
// to be heard of, and for those who left without a word.
func (a *attempt) stand(ctx context.Context) (begun time.Time, fence uint64, err error) {
	turn, done, err := a.r.line.expect(ctx, a.token)
	if err != nil {
		return begun, 0, err
	}
	defer done()
	for {
		begun, fence, again, err := a.ask(ctx, true)
		if err != nil || fence > 0 {
			return begun, fence, err
		}
		ask := time.NewTimer(again)
		select {
		case <-turn:
		case <-ask.C:
		case <-ctx.Done():
			ask.Stop()
			return begun, 0, ctx.Err()
		}
		ask.Stop()
	}
}

// leaving bounds the wait for a Redis that is to be told that nobody waits.
const leaving = 5 * time.Second

// leave leaves the line, and gives back what it may have.
func (a *attempt) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	_, err := a.release(ctx, true)
	return err
}

func (a *attempt) release(ctx context.Context, leave bool) (was bool, err error) {
	also := "0"
	if leave {
		also = "1"
	}
	return releaseScript.Exec(ctx, a.r.c, a.keys, []string{a.token, a.mode, millis(a.r.cfg.grace()), also}).AsBool()
}

// renew renews the lifetime, and raises the fence to at least so much.
func (a *attempt) renew(ctx context.Context, least uint64) (still bool, err error) {
	return renewScript.Exec(ctx, a.r.c, []string{a.keys[0], a.keys[3]},
		[]string{a.token, a.mode, millis(a.r.cfg.Lifetime), strconv.FormatUint(least, 10)}).AsBool()
}

// hold keeps the lock until it is given back.
func (a *attempt) hold(ctx context.Context, fence uint64, begun time.Time) Held {
	renew := func(ctx context.Context) (bool, error) { return a.renew(ctx, fence) }
	return a.r.open.keep(newHeld(ctx, fence), a.r.cfg.Lifetime, begun, renew, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, leaving)
		defer cancel()
		was, err := a.release(ctx, false)
		if err == nil && !was {
			err = ErrLost
		}
		return err
	})
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
