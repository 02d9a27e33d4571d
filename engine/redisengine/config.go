package redisengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// Config configures an engine.
type Config struct {
	// URL is where Redis is: `redis://user:password@host:6379/0`, `rediss://` for
	// TLS, `unix://` for a socket. Further addresses (`?addr=host2:6379`) make it
	// a cluster, `?master_set=name` a set behind Sentinel. Required.
	URL string
	// Dial, when it is set, makes the connections, TLS included.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Login returns the user and the password of the URL at each new connection; nil,
	// also as an answer, for those in the URL. Sentinels have none.
	Login func(url string) *url.Userinfo
	// Durability is what Redis must give, from dibs.LevelNone to
	// dibs.LevelReplicated. Opening fails when it does not. Empty means
	// dibs.LevelDurable.
	Durability string
	// DurabilityLost is what becomes of claims while Redis gives less than that:
	// dibs.RefuseLost, which empty means too, or dibs.WarnLost. Opening fails either
	// way.
	DurabilityLost string
	// Replicas is how many replicas confirm an answer at dibs.LevelReplicated.
	// 0 means all that are connected at the opening, one at least.
	Replicas int
	// Deadline is how long after it was sent a batch of claims may still be
	// decided, by Redis' clock. 0 means one second.
	Deadline time.Duration
	// Patience is how long a claim waits while Redis does not answer, before it
	// fails as unavailable. 0 means three seconds.
	Patience time.Duration
	// Queue is the most claims of a shard that wait here; more are refused as
	// overloaded. 0 means 65,536.
	Queue int
	// KeepRetired is how long the journal of a retired shard stays in Redis. 0
	// means a day.
	KeepRetired time.Duration
	// Logger is for lost answers and forks; nil discards.
	Logger *slog.Logger
}

// WithDefaults returns the configuration with its zero fields filled in.
func (c Config) WithDefaults() Config {
	c.Deadline = cmp.Or(c.Deadline, time.Second)
	c.Patience = cmp.Or(c.Patience, 3*time.Second)
	c.KeepRetired = cmp.Or(c.KeepRetired, 24*time.Hour)
	c.Durability = cmp.Or(c.Durability, dibs.LevelDurable)
	c.DurabilityLost = cmp.Or(c.DurabilityLost, dibs.RefuseLost)
	c.Queue = cmp.Or(c.Queue, 1<<16)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Validate lists everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.URL == "" {
		errs = append(errs, errors.New("redisengine: Config.URL is required"))
	}
	if c.Durability != "" && !slices.Contains(levels, c.Durability) {
		errs = append(errs, fmt.Errorf("redisengine: Config.Durability is %q, not one of %s", c.Durability, strings.Join(levels, ", ")))
	}
	if rules := dibs.LostRules(); c.DurabilityLost != "" && !slices.Contains(rules, c.DurabilityLost) {
		errs = append(errs, fmt.Errorf("redisengine: Config.DurabilityLost is %q, not one of %s", c.DurabilityLost, strings.Join(rules, ", ")))
	}
	if c.Deadline < 0 || c.Patience < 0 || c.KeepRetired < 0 || c.Queue < 0 || c.Replicas < 0 {
		errs = append(errs, errors.New("redisengine: Config.Deadline, Patience, KeepRetired, Queue and Replicas must not be negative"))
	}
	return errors.Join(errs...)
}

// Place returns an address as it can be shown: without user and password, and with no other
// options than those that name another Redis.
func Place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	options := u.Query()
	place, mark := u.Scheme+"://"+strings.Join(append([]string{u.Host}, options["addr"]...), ",")+u.Path, "?"
	for _, name := range []string{"master_set", "db"} {
		if value := options.Get(name); value != "" {
			place, mark = place+mark+name+"="+value, "&"
		}
	}
	return place
}

// levels are those that an engine can give, the weakest first.
var levels = []string{dibs.LevelNone, dibs.LevelRelaxed, dibs.LevelDurable, dibs.LevelReplicated}

// connect connects to Redis. changed is told of the state keys that were written.
func (c Config) connect(changed func([]rueidis.RedisMessage)) (*conn.Client, error) {
	return conn.Connect(conn.Options{URL: c.URL, Dial: c.Dial, Login: c.Login, Patience: c.Patience, Prefix: format.StatePrefix, Changed: changed, Log: c.Logger})
}
