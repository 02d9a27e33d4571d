package strategies

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

//go:embed lua/*.lua
var scripts embed.FS

// script returns a script of this folder.
func script(name string) *rueidis.Lua { return rueidis.NewLuaScript(scriptText(name)) }

// scriptText returns the text of a script of this folder.
func scriptText(name string) string {
	text, err := scripts.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded: a wrong name is seen by every test
	}
	return string(text)
}

// Redis is a database of the lab's own, which counts the commands. It is safe for concurrent use.
type Redis struct {
	c     rueidis.Client
	calls atomic.Int64
}

// OpenRedis connects.
func OpenRedis(address string) (*Redis, error) {
	opt, err := rueidis.ParseURL(address)
	if err != nil {
		return nil, errors.New("strategies: the address of Redis is not a URL such as redis://127.0.0.1:6379/9")
	}
	opt.DisableCache, opt.ForceSingleClient = true, true
	// The strategies with connections of their own have at most this many.
	opt.BlockingPoolSize = packetConns + 4
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, fmt.Errorf("strategies: %w", err)
	}
	return &Redis{c: c}, nil
}

// Close closes the connections.
func (r *Redis) Close() { r.c.Close() }

// Empty says whether nothing is there.
func (r *Redis) Empty(ctx context.Context) (bool, error) {
	n, err := r.c.Do(ctx, r.c.B().Dbsize().Build()).AsInt64()
	return n == 0, err
}

// Flush removes everything, and begins the count anew.
func (r *Redis) Flush(ctx context.Context) error {
	err := r.c.Do(ctx, r.c.B().Flushdb().Build()).Error()
	r.calls.Store(0)
	return err
}

// Replicated waits until a replica confirms a write.
func (r *Redis) Replicated(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		d, release := r.c.Dedicate()
		both := d.DoMulti(ctx, d.B().Set().Key("lab:probe").Value("1").Build(), d.B().Wait().Numreplicas(1).Timeout(1000).Build())
		release()
		n, err := both[1].AsInt64()
		if err != nil || n > 0 {
			return errors.Join(err, r.Flush(ctx))
		}
	}
}

// Calls is how many commands were sent; a script is one.
func (r *Redis) Calls() int64 { return r.calls.Load() }

var scriptCalls = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// ScriptCalls is how many scripts the server has run, of all its clients.
func (r *Redis) ScriptCalls(ctx context.Context) (int64, error) {
	info, err := r.c.Do(ctx, r.c.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return 0, err
	}
	m := scriptCalls.FindStringSubmatch(info)
	if m == nil {
		return 0, nil
	}
	return strconv.ParseInt(m[1], 10, 64)
}

// do sends a command and counts it.
func (r *Redis) do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	r.calls.Add(1)
	return r.c.Do(ctx, cmd)
}

// run runs a script and counts it as one call.
func (r *Redis) run(ctx context.Context, s *rueidis.Lua, keys []string, args ...string) rueidis.RedisResult {
	r.calls.Add(1)
	return s.Exec(ctx, r.c, keys, args)
}

var unlockScript = script("unlock")

// poll is the time before a caller that waits for a lock asks again.
const poll = 10 * time.Millisecond

// tryLock is SET NX PX with the owner's token.
func (r *Redis) tryLock(ctx context.Context, key, token string, life time.Duration) (bool, error) {
	err := r.do(ctx, r.c.B().Set().Key(key).Value(token).Nx().Px(life).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

// lock tries until it has the lock, or the attempt is over.
func (r *Redis) lock(ctx context.Context, w *World, key, token string, life time.Duration) (bool, error) {
	for {
		if got, err := r.tryLock(ctx, key, token, life); got || err != nil {
			return got, err
		}
		if again, err := w.rest(ctx); !again {
			return false, err
		}
	}
}

// rest waits a moment before a caller asks again, which it does not when the attempt is over.
func (w *World) rest(ctx context.Context) (again bool, err error) {
	select {
	case <-time.After(poll):
		return true, nil
	case <-w.Over:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// unlock gives a lock back, in one step, if it is still the owner's.
func (r *Redis) unlock(ctx context.Context, key, token string) error {
	return r.run(context.WithoutCancel(ctx), unlockScript, []string{key}, token).Error()
}
