package lab

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/lab/strategies"
)

// Config says what is run. The zero value is the preset Rush on servers of the
// lab's own; a zero field takes the preset's value.
type Config struct {
	// Preset gives the other fields their defaults; empty means Rush.
	Preset string
	// Strategies are names; empty means the preset's.
	Strategies []string
	// Databases are MariaDB, Postgres, or both, which empty means.
	Databases []string
	// Users press Requests times in all, Concurrency of them at once; each strategy is run once for
	// each Concurrency. A concurrency near the number of presses is a rush, all at the same moment;
	// a small one is a queue of workers. There are Stock units to be had.
	Users, Requests int
	Concurrency     []int
	Stock           int64
	// Time is the longest that one strategy may sell; presses that are under way then may take
	// grace longer. Slow strategies are stopped and their undersold units are not counted.
	Time time.Duration
	// MariaDB, Postgres and Redis are the addresses of servers to use instead of
	// the lab's own. The lab makes databases of its own there, and removes them;
	// Redis must be empty, and is emptied.
	MariaDB, Postgres, Redis string
	// Seed orders the users; 0 means 1, so that runs are alike.
	Seed uint64
	// Progress takes a line for each run; nil shows nothing.
	Progress io.Writer
}

// The databases.
const (
	MariaDB  = "mariadb"
	Postgres = "postgres"
)

// The presets.
const (
	// Rush is 2,000 users with 5,000 presses at once on 200 units.
	Rush = "rush"
	// OneUser is one user with 10,000 presses at once.
	OneUser = "one-user"
	// Packets is 100,000 packets; by 20 workers, and by a crowd.
	Packets = "packets"
)

// Presets returns the names of all presets.
func Presets() []string { return []string{Rush, OneUser, Packets} }

// preset returns the fields of a preset; of Rush for any other name. OneUser has only the strategies
// that limit a user, since the others would sell everything to them and break nothing. Packets runs
// on one database: it compares ways in Redis, which write to it alike.
func preset(name string) Config {
	all := strategies.All()
	choose := func(keep func(s *strategies.Strategy) bool) (names []string) {
		for i := range all {
			if keep(&all[i]) {
				names = append(names, all[i].Name)
			}
		}
		return names
	}
	both := []string{MariaDB, Postgres}
	switch name {
	case OneUser:
		return Config{
			Strategies: choose(func(s *strategies.Strategy) bool { return s.PerUser }), Databases: both,
			Users: 1, Requests: 10_000, Concurrency: []int{10_000}, Stock: 200, Time: 5 * time.Second,
		}
	case Packets:
		return Config{
			Strategies: choose(func(s *strategies.Strategy) bool {
				return strings.HasPrefix(s.Name, "packet-") || s.Name == "multi-exec" || strings.HasPrefix(s.Name, "dibs-")
			}),
			Databases: []string{MariaDB}, Users: 100_000, Requests: 100_000, Concurrency: []int{20, 2048}, Stock: 100_000, Time: 8 * time.Second,
		}
	}
	return Config{
		Strategies: choose(func(*strategies.Strategy) bool { return true }), Databases: both,
		Users: 2_000, Requests: 5_000, Concurrency: []int{5_000}, Stock: 200, Time: 5 * time.Second,
	}
}

// WithDefaults fills what is zero from the preset, and keeps the load meaningful when only a part of
// it was given: never more users than presses, nor more callers than presses.
func (c Config) WithDefaults() Config {
	c.Preset = cmp.Or(c.Preset, Rush)
	p := preset(c.Preset)
	if len(c.Strategies) == 0 {
		c.Strategies = p.Strategies
	}
	if len(c.Databases) == 0 {
		c.Databases = p.Databases
	}
	c.Stock = cmp.Or(c.Stock, p.Stock)
	// More users than presses would be users who do not press.
	c.Requests = cmp.Or(c.Requests, max(p.Requests, c.Users))
	c.Users = cmp.Or(c.Users, min(p.Users, max(c.Requests, 1)))
	if len(c.Concurrency) == 0 {
		for _, n := range p.Concurrency {
			c.Concurrency = append(c.Concurrency, min(n, max(c.Requests, 1)))
		}
	}
	c.Time = cmp.Or(c.Time, p.Time)
	c.Seed = cmp.Or(c.Seed, 1)
	c.Progress = cmp.Or(c.Progress, io.Discard)
	return c
}

// The limits of what may be asked for.
const (
	mostRequests    = 10_000_000
	mostConcurrency = 100_000
	mostTime        = time.Hour
)

// Validate returns everything that is wrong, by the names of the flags. A field that is below zero
// stands for a zero that was asked for: a zero field takes its default. A load whose stock cannot run
// out is refused, since every strategy looks safe under it.
func (c Config) Validate() []settings.Fault {
	var fs []settings.Fault
	fault := func(key, format string, args ...any) {
		fs = append(fs, settings.Fault{Key: "--" + key, Problem: fmt.Sprintf(format, args...)})
	}
	if c.Preset != "" && !slices.Contains(Presets(), c.Preset) {
		fault("preset", "there is no preset %q%s; there are %s", c.Preset, suggest(c.Preset, Presets()), strings.Join(Presets(), ", "))
		// The other fields are still judged, by the defaults of Rush.
		c.Preset = Rush
	}
	c = c.WithDefaults()
	known := Names()
	for _, name := range c.Strategies {
		if !slices.Contains(known, name) {
			fault("strategies", "there is no strategy %q%s; dibs lab --list shows all", name, suggest(name, known))
		}
	}
	for _, name := range c.Databases {
		if !slices.Contains([]string{MariaDB, Postgres}, name) {
			fault("databases", "there is no database %q%s; there are mariadb and postgres", name, suggest(name, []string{MariaDB, Postgres}))
		}
	}
	c.loadFaults(fault)
	return fs
}

// loadFaults reports what is wrong with the sizes of the load.
func (c *Config) loadFaults(fault func(key, format string, args ...any)) {
	if c.Users < 1 {
		fault("users", "must be 1 or more: nobody would press")
	}
	if c.Requests < 1 || c.Requests > mostRequests {
		fault("requests", "must be from 1 to %d", mostRequests)
	}
	if c.Users > c.Requests && c.Requests > 0 {
		fault("requests", "%d presses are fewer than %d users: some would not press", c.Requests, c.Users)
	}
	for _, n := range c.Concurrency {
		if n < 1 || n > mostConcurrency {
			fault("concurrency", "must be from 1 to %d", mostConcurrency)
		}
	}
	switch {
	case c.Stock < 1:
		fault("stock", "must be 1 or more: nothing could be sold")
	// OneUser has more stock than its user may have: the limit, not the stock, is what it tries.
	case c.Stock > int64(c.Users) && c.Users > 0 && c.Preset != OneUser:
		fault("stock", "%d are more than %d users could get, one each, so that nothing would run out: raise --users, or lower it", c.Stock, c.Users)
	}
	if c.Time < 0 || c.Time > mostTime {
		fault("time", "must be above 0 and at most %s", mostTime)
	}
}

// suggest returns ", did you mean …?" for a name near a known one, and an empty text otherwise.
func suggest(name string, known []string) string {
	// Nearest compares with underscores, as settings have them.
	plain := make([]string, len(known))
	for i, k := range known {
		plain[i] = strings.ReplaceAll(k, "-", "_")
	}
	if at := slices.Index(plain, settings.Nearest(name, plain)); at >= 0 {
		return fmt.Sprintf(", did you mean %q?", known[at])
	}
	return ""
}

// Names returns the names of all strategies.
func Names() []string {
	var names []string
	for _, s := range strategies.All() {
		names = append(names, s.Name)
	}
	return names
}

// chosen returns the strategies, in the order of the list, which the table keeps: related ways stand
// together.
func (c *Config) chosen() []strategies.Strategy {
	return slices.DeleteFunc(strategies.All(), func(s strategies.Strategy) bool { return !slices.Contains(c.Strategies, s.Name) })
}
