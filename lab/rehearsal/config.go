package rehearsal

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"net/url"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// Scenario names one of the articles' two loads.
type Scenario string

// The scenarios, with the figures that an empty Config takes from them.
const (
	// ManyUsers is 2,000 users with 5,000 requests at once on 200 units.
	ManyUsers Scenario = "many-users"
	// OneUser is one user with 10,000 requests at once; one may succeed.
	OneUser Scenario = "one-user"
)

// Through names a way to the server.
type Through string

// The ways.
const (
	HTTP      Through = "http"
	WebSocket Through = "ws"
)

// Config configures a rehearsal. The zero value is the first scenario on an
// embedded server of its own; every zero field takes the default named beside
// it. Fields that exclude each other are told by Validate.
type Config struct {
	// Scenario gives the other fields their defaults; default ManyUsers.
	Scenario Scenario
	// Kind is what the campaign gives that is made for the rehearsal: dibs.Sale,
	// the default; dibs.Coupon, of which Stock is the codes, which dibs generates; or
	// dibs.RedPacket, of which Stock is the shares.
	Kind dibs.Kind
	// Users press; default 2,000, or 1.
	Users int
	// Requests is how many presses there are, repeats included; default 5,000,
	// or 10,000. With Duration it follows from the rate.
	Requests int
	// Concurrency is how many requests are under way at once, each on a
	// connection of its own; default: all of them, and 1,000 with Rate.
	Concurrency int
	// Rate is arrivals per second; 0 means waves of Concurrency requests, each
	// wave all at once.
	Rate float64
	// Duration is how long arrivals go on; only with Rate, instead of Requests.
	Duration time.Duration
	// Stock is the campaign's units, default 200; Limit is the units per user,
	// default 1; Quantity is the units of each request, default 1.
	Stock, Limit, Quantity int64
	// Shards is how many parts the stock is divided into, default 1; more need Redis.
	Shards int
	// NoKeys leaves the idempotency keys out, and with them the repeats.
	NoKeys bool
	// Repeats is the share of the requests that repeat another one with its key,
	// below 1; default 0.1, negative means none.
	Repeats float64

	// Through is how the presses reach the server: HTTP, the default, a request
	// each; or WebSocket, over one connection for each user.
	Through Through

	// URL is the server; empty means an embedded one, made for the rehearsal.
	URL string
	// AdminURL is where the server takes admin calls, which need not be where users
	// reach it; default URL.
	AdminURL string
	// AdminKey is an API key of the server; required with URL.
	AdminKey string
	// JWTSecret signs the users' tokens; empty means the tokens of `dibs dev`.
	JWTSecret string
	// Campaign is a published campaign to load; empty means one that is made for
	// the rehearsal and ended afterwards.
	Campaign string
	// Data keeps the embedded server's files in this folder; empty means a
	// temporary one. Engine, Ledger and Durability are those of an embedded
	// server as node.Config has them; Redis needs a ledger that stays.
	Data, Engine, Ledger, Durability string

	// Seed orders the presses; 0 means a random one, which the report names.
	Seed uint64
	// Patience is how long, after the load, a request is sent again that the server
	// puts off (unavailable, overloaded, rate_limited) or does not answer, and how
	// long a server may answer nothing at all, before promises count as not judged;
	// default 1m.
	Patience time.Duration
	// Timeout is the longest that a request may take, default 30s. MaxTime is
	// the longest that the rehearsal may take, default 5m beside Duration.
	Timeout, MaxTime time.Duration
	// Chinese has the server's own verdicts in Chinese as well, which it makes once more
	// for that. The verdicts here are in both languages in any case.
	Chinese bool
	// Progress receives what is going on; nil means nobody. Terminal says that
	// it is one, where lines may be drawn again.
	Progress io.Writer
	Terminal bool
	// On receives the same as values, from several goroutines, and must not wait; nil
	// means nobody.
	On func(Event)
}

// The most that a rehearsal takes on.
// They bound what is kept of the load in memory, some hundred bytes a request, and
// the ports that one machine has.
const (
	maxRequests    = 10_000_000
	maxConcurrency = 60_000
)

// mostPorts is how many connections one address can have to another with the
// ports that Linux gives out by default.
const mostPorts = 28_000

// WithDefaults returns the config with every zero field set.
func (c Config) WithDefaults() Config {
	c.Scenario = cmp.Or(c.Scenario, ManyUsers)
	c.Kind = cmp.Or(c.Kind, dibs.Sale)
	c.Through = cmp.Or(c.Through, HTTP)
	users, requests := 2_000, 5_000
	if c.Scenario == OneUser {
		users, requests = 1, 10_000
	}
	c.Users = cmp.Or(c.Users, users)
	if n := c.Rate * c.Duration.Seconds(); c.Duration > 0 && n > 0 {
		requests = int(min(math.Ceil(n), maxRequests+1))
	}
	c.Requests = cmp.Or(c.Requests, requests)
	concurrency := c.Requests
	if c.Rate > 0 {
		concurrency = min(concurrency, 1_000)
	}
	c.Concurrency = cmp.Or(c.Concurrency, min(concurrency, maxConcurrency))
	if c.Campaign == "" {
		c.Stock = cmp.Or(c.Stock, 200)
		c.Limit = cmp.Or(c.Limit, 1)
		c.Shards = cmp.Or(c.Shards, 1)
	}
	c.Quantity = cmp.Or(c.Quantity, 1)
	c.AdminURL = cmp.Or(c.AdminURL, c.URL)
	switch {
	case c.Repeats < 0 || c.NoKeys && c.Repeats == 0:
		c.Repeats = 0
	case c.Repeats == 0:
		c.Repeats = 0.1
	}
	c.Patience = cmp.Or(c.Patience, time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxTime = cmp.Or(c.MaxTime, 5*time.Minute+c.Duration)
	return c
}

// Validate lists every fault of a config, as given or with defaults. Its fields
// are named as the flags of `dibs rehearse` are.
// The error is *dibs.Error of InvalidRequest; nothing was started.
func (c Config) Validate() error {
	var fs []dibs.Fault
	must := func(ok bool, flag, format string, args ...any) {
		if !ok {
			fs = append(fs, dibs.Fault{Field: "/" + flag, Problem: dibs.Text{EN: fmt.Sprintf(format, args...)}})
		}
	}
	c.exclusions(must)
	c = c.WithDefaults()
	must(c.Scenario == ManyUsers || c.Scenario == OneUser, "scenario", "must be %s or %s", ManyUsers, OneUser)
	must(c.Through == HTTP || c.Through == WebSocket, "through", "must be %s or %s", HTTP, WebSocket)
	must(c.Through != WebSocket || c.Users <= mostPorts, "users", "must be at most %d with --through %s: each has a connection", mostPorts, WebSocket)
	must(c.Kind == dibs.Sale || c.Kind == dibs.Coupon || c.Kind == dibs.RedPacket, "kind", "must be %s, %s or %s", dibs.Sale, dibs.Coupon, dibs.RedPacket)
	must(c.Kind != dibs.Coupon || c.Stock <= dibs.MaxItems, "stock", "must be at most %d codes", dibs.MaxItems)
	must(c.Kind != dibs.RedPacket || c.Stock <= dibs.MaxShares, "stock", "must be at most %d shares", dibs.MaxShares)
	must(c.Users >= 1 && c.Users <= maxRequests, "users", "must be from 1 to %d", maxRequests)
	must(c.Scenario != OneUser || c.Users == 1, "users", "must be 1 in the scenario %s", OneUser)
	must(c.Requests >= 1 && c.Requests <= maxRequests, "requests", "must be from 1 to %d, also when it follows from rate and duration", maxRequests)
	must(c.Concurrency >= 1 && c.Concurrency <= maxConcurrency, "concurrency", "must be from 1 to %d", maxConcurrency)
	must(c.Rate >= 0 && c.Rate <= 1e6, "rate", "must be from 0 to 1000000 a second")
	if c.Campaign == "" {
		must(c.Stock >= 1 && c.Stock <= dibs.MaxStock, "stock", "must be from 1 to %d", dibs.MaxStock)
		must(c.Limit >= 1 && c.Limit <= dibs.MaxLimitPerUser, "limit", "must be from 1 to %d", dibs.MaxLimitPerUser)
		must(c.Shards >= 1, "shards", "must be at least 1")
	}
	must(c.Quantity >= 1 && c.Quantity <= dibs.MaxLimitPerUser, "quantity", "must be from 1 to %d", dibs.MaxLimitPerUser)
	must(c.Repeats < 1, "repeats", "must be below 1: a repeat needs something to repeat")
	must(c.Patience > 0, "patience", "must be positive")
	must(c.Timeout > 0, "timeout", "must be positive")
	must(c.MaxTime > 0, "max-time", "must be positive")
	if len(fs) > 0 {
		return dibs.Invalid(fs...)
	}
	return nil
}

// exclusions judges the fields that depend on each other, before defaults hide
// which were given.
func (c *Config) exclusions(must func(ok bool, flag, format string, args ...any)) {
	must(c.Duration >= 0, "duration", "must not be negative")
	must(c.Duration <= 0 || c.Rate > 0, "duration", "needs --rate")
	must(c.Duration == 0 || c.Requests == 0, "requests", "cannot be combined with --duration, from which it follows")
	must(!c.NoKeys || c.Repeats <= 0, "repeats", "cannot be combined with --keys=false: a repeat is known by its key")
	must(c.Campaign == "" || c.Stock == 0, "stock", "cannot be combined with --campaign, which has its own")
	must(c.Campaign == "" || c.Kind == "" || c.Kind == dibs.Sale, "kind", "cannot be combined with --campaign, which has its own")
	must(c.Campaign == "" || c.Limit == 0, "limit", "cannot be combined with --campaign, which has its own")
	must(c.Campaign == "" || c.Shards == 0, "shards", "cannot be combined with --campaign, which has its own")
	must(c.Campaign == "" || dibs.IsID(c.Campaign), "campaign", "must be 1-64 characters of A-Z a-z 0-9 . _ -")
	if c.URL == "" {
		must(c.AdminURL == "", "admin-url", "needs --url")
		must(c.AdminKey == "", "admin-key", "needs --url")
		must(c.JWTSecret == "", "jwt-secret", "needs --url")
		must(c.Campaign == "" || c.Data != "" || c.Ledger != "", "campaign", "needs --url, or --data with a folder that holds it")
		onRedis := c.Engine != "" && c.Engine != node.Memory
		must(!onRedis || c.Data != "" || c.Ledger != "", "engine", "Redis needs --ledger or --data, with the ledger that its campaigns are in")
		return
	}
	must(isAddress(c.URL), "url", "must look like http://127.0.0.1:8080")
	must(c.AdminURL == "" || isAddress(c.AdminURL), "admin-url", "must look like http://127.0.0.1:8081")
	must(c.AdminKey != "", "admin-key", "is required with --url")
	must(c.Data == "", "data", "cannot be combined with --url")
	must(c.Engine == "", "engine", "cannot be combined with --url")
	must(c.Ledger == "", "ledger", "cannot be combined with --url")
	must(c.Durability == "", "durability", "cannot be combined with --url")
}

// isAddress reports whether a text is the address of a server.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
