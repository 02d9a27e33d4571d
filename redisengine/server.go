package redisengine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// server is what the engine needs of Redis: one server, one behind Sentinel,
// or a cluster. Nothing is ever tried twice by it, except a script that the
// server did not know, and thus did not run.
type server interface {
	// call runs a command of one or two words on a key.
	call(ctx context.Context, command, key string, args ...string) (reply, error)
	// run runs a script.
	run(ctx context.Context, s *script, keys []string, args ...string) (reply, error)
	// ask runs a command without keys on any node.
	ask(ctx context.Context, command string, args ...string) (reply, error)
	// follows reports whether the server tells of changed keys.
	follows() bool
	// nodes asks every server that decides for what it is. Beside an error it returns
	// those that have answered.
	nodes(ctx context.Context) ([]facts, error)
	// masters names the runs of the servers that answer, by address; empty for one
	// that is no master.
	masters(ctx context.Context) map[string]string
	// isCluster reports whether the servers are spoken to as a cluster.
	isCluster() bool
	// await has every answer wait for so many replicas, for so long.
	await(replicas int, patience time.Duration)
	// close ends all connections.
	close()
}

// reply is an answer of Redis: a text, a number or a list.
type reply struct {
	text   string
	number int64
	list   []reply
	// isNumber tells a number from a text.
	isNumber bool
	// none is set for an answer that says there is nothing.
	none bool
}

// answeredError is an error that Redis itself answered.
type answeredError struct{ message string }

func (e *answeredError) Error() string { return "redis: " + e.message }

// refused begins the errors with which Redis refuses a script before its first
// write. All else may have come after one.
var refused = []string{
	"NOSCRIPT", "LOADING", "OOM", "READONLY", "MISCONF", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "MOVED", "ASK",
	"NOREPLICAS", "NOAUTH", "NOPERM", "WRONGTYPE",
}

// changedNothing reports whether an error says for sure that Redis has changed
// nothing.
func changedNothing(err error) bool {
	var answered *answeredError
	if errors.As(err, &answered) {
		for _, code := range refused {
			if strings.HasPrefix(answered.message, code) {
				return true
			}
		}
		return false
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// passing begins the refusals of a server that will soon do better: it loads
// its files or runs a script, or the shard is on its way to another server.
var passing = []string{"LOADING", "BUSY", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "MOVED", "ASK"}

// willPass reports whether an error says that Redis has changed nothing, and
// that it is worth asking again a little later.
func willPass(err error) bool {
	var answered *answeredError
	return errors.As(err, &answered) &&
		slices.ContainsFunc(passing, func(code string) bool { return strings.HasPrefix(answered.message, code+" ") })
}

// client is a server by rueidis.
type client struct {
	c        rueidis.Client
	tracking bool
	// replicas have to confirm what is answered, within waitMS; 0 for none.
	replicas, waitMS int64
}

func (c *client) follows() bool { return c.tracking }

// errURL does not show what it is about: that may hold a password.
var errURL = errors.New("redisengine: Config.URL is not of the form redis://user:password@host:port/database")

// connectTime is about how long all addresses of the URL are tried, twice: to
// connect, and to be greeted.
const connectTime = 2 * time.Second

// connect connects. changed hears of state keys that were written, where the
// server speaks RESP3.
func connect(cfg *Config, changed func([]rueidis.RedisMessage)) (*client, error) {
	opt, err := rueidis.ParseURL(cfg.URL)
	if err != nil {
		return nil, errURL
	}
	if opt.Dialer.Timeout == 0 {
		opt.Dialer.Timeout = max(connectTime/time.Duration(len(opt.InitAddress)), connectTime/4)
	}
	// A command whose answer got lost must not run twice unseen.
	opt.DisableRetry = true
	opt.ConnWriteTimeout = max(cfg.Patience, time.Second)
	if opt.ClientName == "" {
		opt.ClientName = "dibs"
	}
	if cfg.Dial != nil {
		opt.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return cfg.Dial(ctx, addr)
		}
	}
	opt.ClientTrackingOptions = []string{"BCAST", "PREFIX", statePrefix}
	opt.OnInvalidations = changed
	opt.CacheSizeEachConn = 1
	c, err := rueidis.NewClient(opt)
	tracking := err == nil
	if errors.Is(err, rueidis.ErrNoCache) {
		cfg.Logger.Info("Redis does not tell of changed keys: every refusal is asked for", "err", err)
		opt.DisableCache, opt.ClientTrackingOptions, opt.OnInvalidations = true, nil, nil
		c, err = rueidis.NewClient(opt)
	}
	if err != nil {
		return nil, fmt.Errorf("redisengine: connecting: %w", err)
	}
	return &client{c: c, tracking: tracking}, nil
}

// load loads the scripts.
func (c *client) load(ctx context.Context) error {
	for _, node := range c.c.Nodes() {
		for _, s := range scripts {
			// A replica refuses nothing here, and one that misses a script is told
			// the whole text with its first call.
			if err := node.Do(ctx, node.B().ScriptLoad().Script(s.text).Build()).Error(); err != nil {
				return fmt.Errorf("redisengine: loading the script %s: %w", s.name, err)
			}
		}
	}
	return nil
}

func (c *client) await(replicas int, patience time.Duration) {
	c.replicas, c.waitMS = int64(replicas), patience.Milliseconds()
}

// errTooFew says that replicas have not confirmed an answer in time. What was
// decided stands on the master: its effect is unknown.
var errTooFew = errors.New("redisengine: too few replicas have confirmed")

// confirmed runs a command, and has its answer and all before it confirmed by
// the replicas. WAIT counts for its own connection only, so that both go
// together.
func (c *client) confirmed(ctx context.Context, command rueidis.Completed) (reply, error) {
	if c.replicas == 0 {
		return answer(c.c.Do(ctx, command))
	}
	both := c.c.DoMulti(ctx, command, c.c.B().Wait().Numreplicas(c.replicas).Timeout(c.waitMS).Build())
	r, err := answer(both[0])
	if err != nil {
		return r, err
	}
	n, err := both[1].AsInt64()
	if err == nil && n < c.replicas {
		err = fmt.Errorf("%w: %d of %d", errTooFew, n, c.replicas)
	}
	if err != nil {
		return reply{}, errors.Join(errTooFew, err)
	}
	return r, nil
}

func (c *client) call(ctx context.Context, command, key string, args ...string) (reply, error) {
	built := c.c.B().Arbitrary(strings.Fields(command)...).Keys(key).Args(args...).Build()
	if command == "XRANGE" || command == "XINFO STREAM" {
		return c.confirmed(ctx, built)
	}
	return answer(c.c.Do(ctx, built))
}

func (c *client) ask(ctx context.Context, command string, args ...string) (reply, error) {
	return answer(c.c.Do(ctx, c.c.B().Arbitrary(command).Args(args...).Build()))
}

func (c *client) run(ctx context.Context, s *script, keys []string, args ...string) (reply, error) {
	do := func(command rueidis.Completed) (reply, error) {
		if s.waits {
			return c.confirmed(ctx, command)
		}
		return answer(c.c.Do(ctx, command))
	}
	r, err := do(c.c.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	var answered *answeredError
	if errors.As(err, &answered) && strings.HasPrefix(answered.message, "NOSCRIPT") {
		// It was flushed, or the server is another one. Nothing was run, and with
		// the whole text there is no moment in which it can be flushed again.
		return do(c.c.B().Eval().Script(s.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return r, err
}

func (c *client) close() { c.c.Close() }

// answer takes a driver's result apart.
func answer(result rueidis.RedisResult) (reply, error) {
	m, err := result.ToMessage()
	if rueidis.IsRedisNil(err) {
		return reply{none: true}, nil
	}
	var e *rueidis.RedisError
	if errors.As(err, &e) {
		return reply{}, &answeredError{message: e.Error()}
	}
	if err != nil {
		return reply{}, err
	}
	return replyOf(&m)
}

func replyOf(m *rueidis.RedisMessage) (r reply, err error) {
	switch {
	case m.IsNil():
		r.none = true
	case m.IsInt64():
		r.isNumber = true
		r.number, err = m.ToInt64()
	case m.IsString():
		r.text, err = m.ToString()
	case m.IsMap():
		var pairs map[string]rueidis.RedisMessage
		pairs, err = m.ToMap()
		for name, value := range pairs {
			v, err := replyOf(&value)
			if err != nil {
				return r, err
			}
			r.list = append(r.list, reply{text: name}, v)
		}
	case m.IsArray():
		var values []rueidis.RedisMessage
		values, err = m.ToArray()
		r.list = make([]reply, len(values))
		for i := range values {
			if r.list[i], err = replyOf(&values[i]); err != nil {
				return r, err
			}
		}
	default:
		// A text with a note of its format, or an error within a list.
		r.text, err = m.ToString()
	}
	return r, err
}

// pairs reads a list of names and values.
func (r *reply) pairs() map[string]reply {
	all := make(map[string]reply, len(r.list)/2)
	for i := 0; i+1 < len(r.list); i += 2 {
		all[r.list[i].text] = r.list[i+1]
	}
	return all
}
