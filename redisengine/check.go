package redisengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The durability levels of Config.Durability, weakest first.
const (
	// LevelNone promises nothing of what is answered.
	LevelNone = "none"
	// LevelRelaxed loses about two seconds at a power cut, and nothing when the
	// process of Redis dies.
	LevelRelaxed = "relaxed"
	// LevelDurable syncs to the disk before it answers.
	LevelDurable = "durable"
	// LevelReplicated is LevelDurable, and replicas have it too before an answer.
	LevelReplicated = "replicated"
)

var levels = []string{LevelNone, LevelRelaxed, LevelDurable, LevelReplicated}

// Finding is one thing that was checked about Redis.
type Finding struct {
	// Name is what was checked: a setting of Redis, by its own name, or words.
	Name string
	// OK is set when it is as it should be.
	OK bool
	// Warning is set when the engine works although it is not.
	Warning bool
	// Found and Want are how it is and how it should be, for people.
	Found, Want string
	// Remedy says what to do; empty when nothing is.
	Remedy string
}

// String shows the finding in one line.
func (f Finding) String() string {
	if f.OK {
		return f.Name + ": " + f.Found
	}
	return fmt.Sprintf("%s is %s, want %s: %s", f.Name, f.Found, f.Want, f.Remedy)
}

// CheckError is why a Redis cannot give what is configured. It names all that
// is wrong at once, and never a password.
type CheckError struct{ Findings []Finding }

// Error lists the findings.
func (e *CheckError) Error() string {
	all := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		all[i] = f.String()
	}
	return "redisengine: Redis cannot be used as configured: " + strings.Join(all, "; ")
}

// checkTime bounds how long Check takes.
const checkTime = 5 * time.Second

// Check looks at everything that the engine needs of Redis, and returns what it
// found, good or bad, in the order in which it would be mended: the connection
// first. It changes nothing but keys with the tag {probe}, which it removes.
// The error is that of a configuration that cannot be used at all.
func Check(ctx context.Context, cfg Config) ([]Finding, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, err := connect(&cfg, nil)
	if err != nil {
		return []Finding{unreachable(err)}, nil
	}
	defer c.close()
	found := []Finding{{Name: "connection", OK: true, Found: "answers"}}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return append(found, unreachable(err)), nil
	}
	found = append(found, modeOf(nodes, c.isCluster()))
	for i := range nodes {
		found = append(found, nodes[i].findings(&cfg, len(nodes) > 1)...)
	}
	found = append(found, rightsOf(ctx, c), newsOf(c))
	for i := range nodes {
		found = append(found, nodes[i].advice(len(nodes) > 1)...)
	}
	return found, nil
}

// unreachable is the finding of a connection that failed.
func unreachable(err error) Finding {
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS") || strings.Contains(text, "NOAUTH") || strings.Contains(text, "AUTH"):
		return Finding{
			Name: "authentication", Found: text, Want: "user and password that Redis knows",
			Remedy: "set user and password in the URL: redis://user:password@host",
		}
	case strings.Contains(text, "NOPERM"):
		return Finding{
			Name: "rights", Found: text, Want: "a user that may run what the engine needs",
			Remedy: "allow the command to the ACL user of the URL",
		}
	case strings.Contains(text, "cluster support disabled"):
		return Finding{
			Name: "cluster mode", Found: "a standalone server", Want: "a cluster, since the URL has several addresses",
			Remedy: "leave one address in the URL, or set cluster-enabled yes",
		}
	}
	return Finding{
		Name: "connection", Found: text, Want: "a server that answers",
		Remedy: "start Redis, and check host, port and TLS of the URL",
	}
}

// modeOf compares how the driver speaks with what the servers are.
func modeOf(nodes []facts, cluster bool) Finding {
	f := Finding{Name: "cluster mode", OK: nodes[0].cluster == cluster, Found: "a standalone server", Want: "the same as the URL says"}
	if nodes[0].cluster {
		f.Found = "a cluster"
	}
	if !f.OK {
		f.Remedy = "name the nodes of a cluster in the URL, ?addr= for each further one, and one address for a standalone server"
	}
	return f
}

// findings are what decides whether the engine may use a server.
func (f *facts) findings(cfg *Config, several bool) []Finding {
	version := fmt.Sprintf("%d.%d.%d", f.version[0], f.version[1], f.version[2])
	old := slices.Compare(f.version[:], []int{7, 0, 5}) < 0
	found := []Finding{
		{
			Name: "version", OK: !old, Warning: slices.Compare(f.version[:], []int{6, 2, 0}) >= 0, Found: version,
			Want: "7.0.5 or newer", Remedy: "upgrade Redis",
		},
		{Name: "role", OK: f.role == "master", Found: f.role, Want: "master", Remedy: "connect to the master, or by Sentinel (?master_set=)"},
		{
			Name: "run_id", OK: f.run != "", Found: shown(f.run), Want: "the id of the server's run in INFO",
			Remedy: "use a Redis that shows it: without it a failover cannot be noticed",
		},
		{
			Name: "maxmemory-policy", OK: f.policy == "noeviction", Found: shown(f.policy), Want: "noeviction",
			Remedy: "set maxmemory-policy noeviction: what is evicted would be sold again",
		},
	}
	if cfg.Durability != LevelNone {
		found = append(found, f.persistence(cfg.Durability)...)
	}
	if cfg.Durability == LevelReplicated {
		want := max(cfg.Replicas, 1)
		found = append(found, Finding{
			Name: "replicas", OK: f.replicas >= want, Found: fmt.Sprintf("%d connected", f.replicas), Want: fmt.Sprintf("%d", want),
			Remedy: "connect replicas (replicaof), or set durability to durable",
		})
	}
	return f.named(found, several)
}

// persistence are the settings that a level needs.
func (f *facts) persistence(level string) []Finding {
	only := fmt.Sprintf(", or set durability to something weaker than %s", level)
	aof, want := "no", "always"
	if f.aof {
		aof = "yes"
	}
	enough := f.fsync == "always"
	if level == LevelRelaxed {
		want, enough = "everysec", enough || f.fsync == "everysec"
	}
	show := func(value string) string {
		if value == unread {
			return "; when Redis does not show it, allow CONFIG GET to the user"
		}
		return ""
	}
	return []Finding{
		{Name: "appendonly", OK: f.aof, Found: aof, Want: "yes", Remedy: "set appendonly yes" + only},
		{Name: "appendfsync", OK: enough, Found: f.fsync, Want: want, Remedy: "set appendfsync " + want + only + show(f.fsync)},
		{
			Name: "no-appendfsync-on-rewrite", OK: f.noFsync == "no", Found: f.noFsync, Want: "no",
			Remedy: "set no-appendfsync-on-rewrite no" + only + show(f.noFsync),
		},
	}
}

// named tells which server each finding is about, where there are several.
func (f *facts) named(found []Finding, several bool) []Finding {
	for i := range found {
		if several {
			found[i].Found += " on " + f.addr
		}
		if found[i].OK {
			found[i].Remedy, found[i].Warning = "", false
		}
	}
	return found
}

// mostSkew is how far the clocks may be apart before it is said, in ms.
const mostSkew = 1000

// advice are the findings that the engine works in spite of.
func (f *facts) advice(several bool) []Finding {
	found := []Finding{{
		Name: "clock", OK: f.skew <= mostSkew && f.skew >= -mostSkew, Warning: true, Want: "within a second of this host's",
		Found: fmt.Sprintf("%+d ms from this host's", f.skew), Remedy: "run NTP on both hosts: windows open by Redis' clock",
	}}
	if f.most > 0 {
		limit := "the machine's memory"
		if f.capped {
			limit = "maxmemory"
		}
		found = append(found, Finding{
			Name: "memory", OK: f.used*5 < f.most*4, Warning: true, Found: fmt.Sprintf("%d%% of %s in use", f.used*100/f.most, limit),
			Want: "less than 80%", Remedy: "give Redis more memory: a full one refuses every claim",
		})
	}
	return f.named(found, several)
}

func shown(value string) string {
	if value == "" {
		return unread
	}
	return value
}

// newsOf tells whether refusals are given without asking Redis.
func newsOf(c *client) Finding {
	f := Finding{
		Name: "client tracking", OK: c.tracking, Warning: true, Found: "on", Want: "on",
		Remedy: "use a Redis, or a proxy, of RESP3 with CLIENT TRACKING: without it every refusal is asked for",
	}
	if f.OK {
		f.Remedy, f.Warning = "", false
	} else {
		f.Found = "off"
	}
	return f
}

// rightsOf has Redis try every command that the scripts use.
func rightsOf(ctx context.Context, c *client) Finding {
	f := Finding{Name: "rights", OK: true, Found: "every command that is needed", Want: "every command that is needed"}
	r, err := c.run(ctx, probeScript, probeKeys)
	var answered *answeredError
	switch {
	case errors.As(err, &answered):
		f.OK, f.Found = false, answered.message
	case err != nil:
		f.OK, f.Found = false, err.Error()
	case len(r.list) > 4:
		var refused []string
		for _, v := range r.list[4:] {
			refused = append(refused, v.text)
		}
		f.OK, f.Found = false, "refused: "+strings.Join(refused, ", ")
	}
	if !f.OK {
		f.Remedy = "allow the engine's user: ACL SETUSER name ~dibs:* +@all -@dangerous +info +config|get +client|tracking"
	}
	return f
}

// inspect compares the servers with what is configured: a CheckError when they
// cannot give it. It returns the level that they give, and the replicas that all
// of them have.
func inspect(nodes []facts, cfg *Config, cluster bool) (level string, replicas int, err error) {
	bad := &CheckError{}
	level, replicas = LevelDurable, nodes[0].replicas
	if f := modeOf(nodes, cluster); !f.OK {
		bad.Findings = append(bad.Findings, f)
	}
	for i := range nodes {
		for _, f := range nodes[i].findings(cfg, len(nodes) > 1) {
			if !f.OK && !f.Warning {
				bad.Findings = append(bad.Findings, f)
			} else if !f.OK {
				cfg.Logger.Warn("Redis is not as it should be", "finding", f.String())
			}
		}
		if given := nodes[i].level(); slices.Index(levels, given) < slices.Index(levels, level) {
			level = given
		}
		replicas = min(replicas, nodes[i].replicas)
	}
	if level == LevelDurable && cfg.Durability == LevelReplicated && replicas >= max(cfg.Replicas, 1) {
		level = LevelReplicated
	}
	if len(bad.Findings) > 0 {
		return level, replicas, bad
	}
	return level, replicas, nil
}
