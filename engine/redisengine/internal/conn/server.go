package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/logins"
)

// Server is what the engine needs of Redis: one server, one behind Sentinel,
// or a cluster. Nothing is ever tried twice by it, except a script that the
// server did not know, and thus did not run.
type Server interface {
	// Call runs a command of one or two words on a key.
	Call(ctx context.Context, command, key string, args ...string) (Reply, error)
	// Run runs a script.
	Run(ctx context.Context, s *Script, keys []string, args ...string) (Reply, error)
	// Ask runs a command without keys on any node.
	Ask(ctx context.Context, command string, args ...string) (Reply, error)
	// Follows reports whether the server tells of changed keys.
	Follows() bool
	// Nodes asks every server that decides for what it is. Beside an error it returns
	// those that have answered.
	Nodes(ctx context.Context) ([]Facts, error)
	// Masters names the runs of the servers that answer, by address; empty for one
	// that is no master.
	Masters(ctx context.Context) map[string]string
	// IsCluster reports whether the servers are spoken to as a cluster.
	IsCluster() bool
	// Close ends all connections.
	Close()
}

var _ Server = (*Client)(nil)

// Client is a Server by rueidis. It does not change once Await was called, and is
// safe for concurrent use.
type Client struct {
	c        rueidis.Client
	tracking bool
	// replicas have to confirm what is answered, within waitMS; 0 for none.
	replicas, waitMS int64
}

// Follows implements Server.
func (c *Client) Follows() bool { return c.tracking }

// errURL does not show what it is about: that may hold a password.
var errURL = errors.New("redisengine: Config.URL is not of the form redis://user:password@host:port/database")

// connectTime is about how long all addresses of the URL are tried, twice: to
// connect, and to be greeted.
const connectTime = 2 * time.Second

// Options are how to reach Redis.
type Options struct {
	// URL is as rueidis takes it. dial makes the connections where it is set.
	URL  string
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Login returns the user and the password of the URL at each new connection; nil,
	// also as an answer, for those in the URL.
	Login func(url string) *url.Userinfo
	// Patience is how long a command may wait to be written.
	Patience time.Duration
	// Prefix begins the keys that are tracked, and changed is told of those that were
	// written, where the server speaks RESP3; nil for all of them.
	Prefix  string
	Changed func([]rueidis.RedisMessage)
	Log     *slog.Logger
}

// Connect connects to Redis. Nothing is loaded there yet.
func Connect(o Options) (*Client, error) {
	opt, err := rueidis.ParseURL(o.URL)
	if err != nil {
		return nil, errURL
	}
	opt.Dialer.Timeout = cmp.Or(opt.Dialer.Timeout, max(connectTime/time.Duration(len(opt.InitAddress)), connectTime/4))
	// A command whose answer got lost must not run twice unseen.
	opt.DisableRetry = true
	opt.ConnWriteTimeout = max(o.Patience, time.Second)
	opt.ClientName = cmp.Or(opt.ClientName, "dibs")
	if o.Dial != nil {
		opt.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return o.Dial(ctx, addr)
		}
	}
	opt.ClientTrackingOptions = []string{"BCAST", "PREFIX", o.Prefix}
	opt.OnInvalidations = o.Changed
	opt.CacheSizeEachConn = 1
	if o.Login != nil {
		logins.Redis(&opt, func() *url.Userinfo { return o.Login(o.URL) })
	}
	c, err := rueidis.NewClient(opt)
	tracking := err == nil
	if errors.Is(err, rueidis.ErrNoCache) {
		o.Log.Info("Redis does not tell of changed keys: every refusal is asked for", "err", err)
		opt.DisableCache, opt.ClientTrackingOptions, opt.OnInvalidations = true, nil, nil
		c, err = rueidis.NewClient(opt)
	}
	if err != nil {
		return nil, fmt.Errorf("redisengine: connecting: %w", err)
	}
	return &Client{c: c, tracking: tracking}, nil
}

// Load loads the scripts.
func (c *Client) Load(ctx context.Context) error {
	for _, node := range c.c.Nodes() {
		for _, s := range scripts {
			// A replica refuses nothing here, and one that misses a script is told
			// the whole text with its first call.
			if err := node.Do(ctx, node.B().ScriptLoad().Script(s.text).Build()).Error(); err != nil {
				return fmt.Errorf("redisengine: loading the script %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

// Await has every answer wait for so many replicas, for so long. It is called before
// anything else is.
func (c *Client) Await(replicas int, patience time.Duration) {
	c.replicas, c.waitMS = int64(replicas), patience.Milliseconds()
}

// errTooFew says that replicas have not confirmed an answer in time. The decision
// stands on the master: its effect is unknown.
var errTooFew = errors.New("redisengine: too few replicas have confirmed")

// confirmed runs a command, and has its answer and all before it confirmed by
// the replicas. WAIT counts for its own connection only, so that both go
// together.
func (c *Client) confirmed(ctx context.Context, command rueidis.Completed) (Reply, error) {
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
		return Reply{}, errors.Join(errTooFew, err)
	}
	return r, nil
}

// Call implements Server.
func (c *Client) Call(ctx context.Context, command, key string, args ...string) (Reply, error) {
	built := c.c.B().Arbitrary(strings.Fields(command)...).Keys(key).Args(args...).Build()
	if command == "XRANGE" || command == "XINFO STREAM" {
		return c.confirmed(ctx, built)
	}
	return answer(c.c.Do(ctx, built))
}

// Ask implements Server.
func (c *Client) Ask(ctx context.Context, command string, args ...string) (Reply, error) {
	return answer(c.c.Do(ctx, c.c.B().Arbitrary(command).Args(args...).Build()))
}

// Run implements Server.
func (c *Client) Run(ctx context.Context, s *Script, keys []string, args ...string) (Reply, error) {
	do := func(command rueidis.Completed) (Reply, error) {
		if s.waits {
			return c.confirmed(ctx, command)
		}
		return answer(c.c.Do(ctx, command))
	}
	r, err := do(c.c.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if Says(err, "NOSCRIPT") {
		// It was flushed, or the server is another one. Nothing was run, and with
		// the whole text there is no moment in which it can be flushed again.
		return do(c.c.B().Eval().Script(s.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return r, err
}

// Close implements Server.
func (c *Client) Close() { c.c.Close() }

// Nodes returns what every server tells of itself, replicas of a cluster left
// out: they decide nothing. Beside an error it returns those that have answered.
func (c *Client) Nodes(ctx context.Context) ([]Facts, error) {
	var mu sync.Mutex
	var all []Facts
	var errs []error
	var asks sync.WaitGroup
	for addr, node := range c.c.Nodes() {
		asks.Go(func() {
			f, err := factsOf(ctx, addr, node)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("redisengine: asking %s: %w", addr, err))
			case f.Role == "master" || !c.IsCluster():
				all = append(all, *f)
			}
		})
	}
	asks.Wait()
	if len(all) == 0 && len(errs) == 0 {
		return nil, errNoMaster
	}
	slices.SortFunc(all, func(a, b Facts) int { return strings.Compare(a.Addr, b.Addr) })
	return all, errors.Join(errs...)
}

// IsCluster reports whether the driver speaks to a cluster.
func (c *Client) IsCluster() bool { return c.c.Mode() == rueidis.ClientModeCluster }

// Masters asks every server that is known who it is, all at once. One that does
// not answer in time is left out.
func (c *Client) Masters(ctx context.Context) map[string]string {
	var mu sync.Mutex
	runs := make(map[string]string)
	var asks sync.WaitGroup
	for addr, node := range c.c.Nodes() {
		asks.Go(func() {
			r, err := answer(node.Do(ctx, node.B().Arbitrary("INFO").Build()))
			if err != nil || r.Text == "" {
				return
			}
			info, run := infoOf(r.Text), ""
			if info["role"] == "master" {
				run = info["run_id"]
			}
			mu.Lock()
			defer mu.Unlock()
			runs[addr] = run
		})
	}
	asks.Wait()
	return runs
}
