package redisengine

import (
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
)

// standing is OK, or what it is otherwise.
func standing(ok bool, otherwise dibs.Standing) dibs.Standing {
	if ok {
		return dibs.StandingOK
	}
	return otherwise
}

// modeOf compares how the driver speaks with what the servers are.
func modeOf(nodes []conn.Facts, cluster bool) dibs.Finding {
	f := dibs.Finding{
		Standing: standing(nodes[0].Cluster == cluster, dibs.StandingFail), Subject: "cluster mode",
		Found: "a standalone server", Wanted: "the same as the URL says",
	}
	if nodes[0].Cluster {
		f.Found = "a cluster"
	}
	if !f.OK() {
		f.Remedy = "name the nodes of a cluster in the URL, ?addr= for each further one, and one address for a standalone server"
	}
	return f
}

// findingsOf returns what decides whether the engine may use a server.
func findingsOf(f *conn.Facts, cfg *Config, several bool) []dibs.Finding {
	found := []dibs.Finding{
		{
			Standing: versionStanding(f), Subject: "version", Found: fmt.Sprintf("%d.%d.%d", f.Version[0], f.Version[1], f.Version[2]),
			Wanted: "7.0.5 or newer", Remedy: "upgrade Redis",
		},
		{
			Standing: standing(f.Role == "master", dibs.StandingFail), Subject: "role", Found: f.Role, Wanted: "master",
			Remedy: "connect to the master, or by Sentinel (?master_set=)",
		},
		{
			Standing: standing(f.Run != "", dibs.StandingFail), Subject: "run_id", Found: shown(f.Run), Wanted: "the id of the server's run in INFO",
			Remedy: "use a Redis that shows it: without it a failover cannot be noticed",
		},
	}
	return named(f, append(found, settingsOf(f, cfg)...), several)
}

// evicting is the subject of the setting without which units would be sold twice.
const evicting = "maxmemory-policy"

// settingsOf returns the findings of what the level depends on, all of which may change
// while the server runs.
func settingsOf(f *conn.Facts, cfg *Config) []dibs.Finding {
	found := []dibs.Finding{{
		Standing: standing(f.Policy == "noeviction", dibs.StandingFail), Subject: evicting, Found: shown(f.Policy), Wanted: "noeviction",
		Remedy: "set maxmemory-policy noeviction: what is evicted would be sold again",
	}}
	if cfg.Durability != dibs.LevelNone {
		found = append(found, persistence(f, cfg.Durability)...)
	}
	if cfg.Durability == dibs.LevelReplicated {
		want := max(cfg.Replicas, 1)
		found = append(found, dibs.Finding{
			Standing: standing(f.Replicas >= want, dibs.StandingFail), Subject: "replicas",
			Found: fmt.Sprintf("%d connected", f.Replicas), Wanted: fmt.Sprintf("%d", want),
			Remedy: "connect replicas (replicaof), or set durability to durable",
		})
	}
	return found
}

// versionStanding warns of versions that have every command, and are older than
// those that the engine is tested with.
func versionStanding(f *conn.Facts) dibs.Standing {
	switch {
	case slices.Compare(f.Version[:], []int{7, 0, 5}) >= 0:
		return dibs.StandingOK
	case slices.Compare(f.Version[:], []int{6, 2, 0}) >= 0:
		return dibs.StandingWarn
	}
	return dibs.StandingFail
}

// persistence are the settings that a level needs.
func persistence(f *conn.Facts, level string) []dibs.Finding {
	only := fmt.Sprintf(", or set durability to something weaker than %s", level)
	aof, want := "no", "always"
	switch {
	case f.Unsaved:
		aof = "yes, and not yet written since it was no"
	case f.AOF:
		aof = "yes"
	}
	written := "ok"
	if f.Unwritten {
		written = "err"
	}
	enough := f.Fsync == "always"
	if level == dibs.LevelRelaxed {
		want, enough = "everysec", enough || f.Fsync == "everysec"
	}
	show := func(value string) string {
		if value == conn.Unread {
			return "; when Redis does not show it, allow CONFIG GET to the user"
		}
		return ""
	}
	return []dibs.Finding{
		{Standing: standing(f.AOF && !f.Unsaved, dibs.StandingFail), Subject: "appendonly", Found: aof, Wanted: "yes", Remedy: "set appendonly yes" + only},
		{
			Standing: standing(enough, dibs.StandingFail), Subject: "appendfsync", Found: f.Fsync, Wanted: want,
			Remedy: "set appendfsync " + want + only + show(f.Fsync),
		},
		{
			Standing: standing(f.NoFsync == "no", dibs.StandingFail), Subject: "no-appendfsync-on-rewrite", Found: f.NoFsync, Wanted: "no",
			Remedy: "set no-appendfsync-on-rewrite no" + only + show(f.NoFsync),
		},
		{
			Standing: standing(!f.Unwritten, dibs.StandingFail), Subject: "aof_last_write_status", Found: written, Wanted: "ok",
			Remedy: "make room on Redis' disk, or repair it: its log says what failed",
		},
	}
}

// named tells which server each finding is about, where there are several.
func named(f *conn.Facts, found []dibs.Finding, several bool) []dibs.Finding {
	for i := range found {
		if several {
			found[i].Found += " on " + f.Addr
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
func advice(f *conn.Facts, several bool) []dibs.Finding {
	found := []dibs.Finding{{
		Standing: standing(f.Skew <= mostSkew && f.Skew >= -mostSkew, dibs.StandingWarn), Subject: "clock",
		Found: fmt.Sprintf("%+d ms from this host's", f.Skew), Wanted: "within a second of this host's",
		Remedy: "run NTP on both hosts: windows open by Redis' clock",
	}}
	if f.Most > 0 {
		limit := "the machine's memory"
		if f.Capped {
			limit = "maxmemory"
		}
		found = append(found, dibs.Finding{
			Standing: standing(f.Used*5 < f.Most*4, dibs.StandingWarn), Subject: "memory",
			Found: fmt.Sprintf("%d%% of %s in use", f.Used*100/f.Most, limit), Wanted: "less than 80%",
			Remedy: "give Redis more memory: a full one refuses every claim",
		})
	}
	return named(f, found, several)
}

func shown(value string) string {
	if value == "" {
		return conn.Unread
	}
	return value
}
