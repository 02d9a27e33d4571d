package redisengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// levels are those that an engine can give, the weakest first.
var levels = []string{dibs.LevelNone, dibs.LevelRelaxed, dibs.LevelDurable, dibs.LevelReplicated}

// CheckError is why a Redis cannot give what is configured. It names all that
// is wrong at once, and never a password.
type CheckError struct{ Findings []dibs.Finding }

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
func Check(ctx context.Context, cfg Config) ([]dibs.Finding, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, err := connect(&cfg, nil)
	if err != nil {
		return []dibs.Finding{unreachable(err)}, nil
	}
	defer c.close()
	found := []dibs.Finding{{Standing: dibs.StandingOK, Subject: "connection", Found: "answers"}}
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
func unreachable(err error) dibs.Finding {
	text := strings.TrimPrefix(err.Error(), "redisengine: ")
	switch {
	case strings.Contains(text, "WRONGPASS") || strings.Contains(text, "NOAUTH") || strings.Contains(text, "AUTH"):
		return dibs.Finding{
			Standing: dibs.StandingFail, Subject: "authentication", Found: text, Wanted: "user and password that Redis knows",
			Remedy: "set user and password in the URL: redis://user:password@host",
		}
	case strings.Contains(text, "NOPERM"):
		return dibs.Finding{
			Standing: dibs.StandingFail, Subject: "rights", Found: text, Wanted: "a user that may run what the engine needs",
			Remedy: "allow the command to the ACL user of the URL; in a cluster cluster|slots and cluster|shards too",
		}
	case strings.Contains(text, "cluster support disabled"):
		return dibs.Finding{
			Standing: dibs.StandingFail, Subject: "cluster mode", Found: "a standalone server", Wanted: "a cluster, since the URL has several addresses",
			Remedy: "leave one address in the URL, or set cluster-enabled yes",
		}
	}
	return dibs.Finding{
		Standing: dibs.StandingFail, Subject: "connection", Found: text, Wanted: "a server that answers",
		Remedy: "start Redis, and check host, port and TLS of the URL",
	}
}

// standing is OK, or what it is otherwise.
func standing(ok bool, otherwise dibs.Standing) dibs.Standing {
	if ok {
		return dibs.StandingOK
	}
	return otherwise
}

// modeOf compares how the driver speaks with what the servers are.
func modeOf(nodes []facts, cluster bool) dibs.Finding {
	f := dibs.Finding{
		Standing: standing(nodes[0].cluster == cluster, dibs.StandingFail), Subject: "cluster mode",
		Found: "a standalone server", Wanted: "the same as the URL says",
	}
	if nodes[0].cluster {
		f.Found = "a cluster"
	}
	if !f.OK() {
		f.Remedy = "name the nodes of a cluster in the URL, ?addr= for each further one, and one address for a standalone server"
	}
	return f
}

// findings are what decides whether the engine may use a server.
func (f *facts) findings(cfg *Config, several bool) []dibs.Finding {
	found := []dibs.Finding{
		{
			Standing: f.versionStanding(), Subject: "version", Found: fmt.Sprintf("%d.%d.%d", f.version[0], f.version[1], f.version[2]),
			Wanted: "7.0.5 or newer", Remedy: "upgrade Redis",
		},
		{
			Standing: standing(f.role == "master", dibs.StandingFail), Subject: "role", Found: f.role, Wanted: "master",
			Remedy: "connect to the master, or by Sentinel (?master_set=)",
		},
		{
			Standing: standing(f.run != "", dibs.StandingFail), Subject: "run_id", Found: shown(f.run), Wanted: "the id of the server's run in INFO",
			Remedy: "use a Redis that shows it: without it a failover cannot be noticed",
		},
	}
	return f.named(append(found, f.settings(cfg)...), several)
}

// evicting is the subject of the setting without which units would be sold twice.
const evicting = "maxmemory-policy"

// settings are the findings of what the level depends on, all of which may change
// while the server runs.
func (f *facts) settings(cfg *Config) []dibs.Finding {
	found := []dibs.Finding{{
		Standing: standing(f.policy == "noeviction", dibs.StandingFail), Subject: evicting, Found: shown(f.policy), Wanted: "noeviction",
		Remedy: "set maxmemory-policy noeviction: what is evicted would be sold again",
	}}
	if cfg.Durability != dibs.LevelNone {
		found = append(found, f.persistence(cfg.Durability)...)
	}
	if cfg.Durability == dibs.LevelReplicated {
		want := max(cfg.Replicas, 1)
		found = append(found, dibs.Finding{
			Standing: standing(f.replicas >= want, dibs.StandingFail), Subject: "replicas",
			Found: fmt.Sprintf("%d connected", f.replicas), Wanted: fmt.Sprintf("%d", want),
			Remedy: "connect replicas (replicaof), or set durability to durable",
		})
	}
	return found
}

// versionStanding warns of versions that have every command, and are older than
// those that the engine is tested with.
func (f *facts) versionStanding() dibs.Standing {
	switch {
	case slices.Compare(f.version[:], []int{7, 0, 5}) >= 0:
		return dibs.StandingOK
	case slices.Compare(f.version[:], []int{6, 2, 0}) >= 0:
		return dibs.StandingWarn
	}
	return dibs.StandingFail
}

// persistence are the settings that a level needs.
func (f *facts) persistence(level string) []dibs.Finding {
	only := fmt.Sprintf(", or set durability to something weaker than %s", level)
	aof, want := "no", "always"
	switch {
	case f.unsaved:
		aof = "yes, and not yet written since it was no"
	case f.aof:
		aof = "yes"
	}
	written := "ok"
	if f.unwritten {
		written = "err"
	}
	enough := f.fsync == "always"
	if level == dibs.LevelRelaxed {
		want, enough = "everysec", enough || f.fsync == "everysec"
	}
	show := func(value string) string {
		if value == unread {
			return "; when Redis does not show it, allow CONFIG GET to the user"
		}
		return ""
	}
	return []dibs.Finding{
		{Standing: standing(f.aof && !f.unsaved, dibs.StandingFail), Subject: "appendonly", Found: aof, Wanted: "yes", Remedy: "set appendonly yes" + only},
		{
			Standing: standing(enough, dibs.StandingFail), Subject: "appendfsync", Found: f.fsync, Wanted: want,
			Remedy: "set appendfsync " + want + only + show(f.fsync),
		},
		{
			Standing: standing(f.noFsync == "no", dibs.StandingFail), Subject: "no-appendfsync-on-rewrite", Found: f.noFsync, Wanted: "no",
			Remedy: "set no-appendfsync-on-rewrite no" + only + show(f.noFsync),
		},
		{
			Standing: standing(!f.unwritten, dibs.StandingFail), Subject: "aof_last_write_status", Found: written, Wanted: "ok",
			Remedy: "make room on Redis' disk, or repair it: its log says what failed",
		},
	}
}

// named tells which server each finding is about, where there are several.
func (f *facts) named(found []dibs.Finding, several bool) []dibs.Finding {
	for i := range found {
		if several {
			found[i].Found += " on " + f.addr
		}
		if found[i].OK() {
			found[i].Remedy = ""
		}
	}
	return found
}

// mostSkew is how far the clocks may be apart before it is said, in ms.
const mostSkew = 1000

// advice are the findings that the engine works in spite of.
func (f *facts) advice(several bool) []dibs.Finding {
	found := []dibs.Finding{{
		Standing: standing(f.skew <= mostSkew && f.skew >= -mostSkew, dibs.StandingWarn), Subject: "clock",
		Found: fmt.Sprintf("%+d ms from this host's", f.skew), Wanted: "within a second of this host's",
		Remedy: "run NTP on both hosts: windows open by Redis' clock",
	}}
	if f.most > 0 {
		limit := "the machine's memory"
		if f.capped {
			limit = "maxmemory"
		}
		found = append(found, dibs.Finding{
			Standing: standing(f.used*5 < f.most*4, dibs.StandingWarn), Subject: "memory",
			Found: fmt.Sprintf("%d%% of %s in use", f.used*100/f.most, limit), Wanted: "less than 80%",
			Remedy: "give Redis more memory: a full one refuses every claim",
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
func newsOf(c *client) dibs.Finding {
	f := dibs.Finding{Standing: dibs.StandingOK, Subject: "client tracking", Found: "on", Wanted: "on"}
	if !c.tracking {
		f.Standing, f.Found = dibs.StandingWarn, "off"
		f.Remedy = "use a Redis, or a proxy, of RESP3 with CLIENT TRACKING: without it every refusal is asked for"
	}
	return f
}

// neededRights are the rules of a user that may do what the engine does, on a
// server that is no cluster, and nothing else that matters.
const neededRights = "~dibs:* -@all +@hash +@string +@list +@set +@stream +@scripting +@keyspace +@connection +config|get +info +wait +time"

// rightsOf has Redis try every command that the scripts use.
func rightsOf(ctx context.Context, c *client) dibs.Finding {
	const all = "every command that is needed"
	f := dibs.Finding{Standing: dibs.StandingOK, Subject: "rights", Found: all, Wanted: all}
	r, err := c.run(ctx, probeScript, probeKeys)
	var answered *answeredError
	switch {
	case errors.As(err, &answered):
		f.Found = answered.message
	case err != nil:
		f.Found = err.Error()
	case len(r.list) > 4:
		var refused []string
		for _, v := range r.list[4:] {
			refused = append(refused, v.text)
		}
		f.Found = "refused: " + strings.Join(refused, ", ")
	default:
		return f
	}
	f.Standing = dibs.StandingFail
	f.Remedy = "allow the engine's user: ACL SETUSER name " + neededRights
	return f
}

// inspect compares the servers with what is configured: a CheckError when they
// cannot give it. It returns the level that they give, and the replicas that all
// of them have.
func inspect(nodes []facts, cfg *Config, cluster bool) (level string, replicas int, err error) {
	bad := &CheckError{}
	level, replicas = dibs.LevelDurable, nodes[0].replicas
	if f := modeOf(nodes, cluster); !f.OK() {
		bad.Findings = append(bad.Findings, f)
	}
	for i := range nodes {
		for _, f := range nodes[i].findings(cfg, len(nodes) > 1) {
			if f.Standing == dibs.StandingFail {
				bad.Findings = append(bad.Findings, f)
			}
		}
		if given := nodes[i].level(); slices.Index(levels, given) < slices.Index(levels, level) {
			level = given
		}
		replicas = min(replicas, nodes[i].replicas)
	}
	if level == dibs.LevelDurable && cfg.Durability == dibs.LevelReplicated && replicas >= max(cfg.Replicas, 1) {
		level = dibs.LevelReplicated
	}
	if len(bad.Findings) > 0 {
		return level, replicas, bad
	}
	return level, replicas, nil
}
