package redisengine_test

import (
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// wrongIn names what a check finds wrong; warnings have a question mark.
func wrongIn(found []dibs.Finding) []string {
	var names []string
	for _, f := range found {
		switch f.Standing {
		case dibs.StandingOK:
		case dibs.StandingWarn:
			names = append(names, f.Subject+"?")
		default:
			names = append(names, f.Subject)
		}
	}
	return names
}

// A server that lacks abilities is refused with all of them at once, each with its remedy.
func TestLevelsAreChecked(t *testing.T) {
	everysec := []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	for name, c := range map[string]struct {
		level string
		args  []string
		want  []string
	}{
		"durable on always":           {"durable", servers.RedisAlways, nil},
		"durable by default":          {"", servers.RedisAlways, nil},
		"relaxed on everysec":         {"relaxed", everysec, nil},
		"relaxed on always":           {"relaxed", servers.RedisAlways, nil},
		"none on nothing":             {"none", nil, nil},
		"durable on everysec":         {"durable", everysec, []string{"appendfsync"}},
		"durable on nothing":          {"durable", nil, []string{"appendonly", "appendfsync"}},
		"relaxed on no fsync":         {"relaxed", []string{"--appendonly", "yes", "--appendfsync", "no"}, []string{"appendfsync"}},
		"no fsync while rewriting":    {"durable", slices.Concat(servers.RedisAlways, []string{"--no-appendfsync-on-rewrite", "yes"}), []string{"no-appendfsync-on-rewrite"}},
		"eviction":                    {"none", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, []string{"maxmemory-policy"}},
		"eviction without a maximum":  {"none", []string{"--maxmemory-policy", "volatile-ttl"}, []string{"maxmemory-policy"}},
		"settings that are not shown": {"durable", slices.Concat(servers.RedisAlways, []string{"--rename-command", "CONFIG", ""}), []string{"appendfsync", "no-appendfsync-on-rewrite"}},
		"replicated alone":            {"replicated", servers.RedisAlways, []string{"replicas"}},
		"the old protocol":            {"none", []string{"--rename-command", "HELLO", ""}, []string{"client tracking?"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := redisengine.Config{URL: startRedis(t, c.args...).URL(), Durability: c.level}
			found, err := redisengine.Check(t.Context(), cfg)
			must(t, err)
			if got := wrongIn(found); !slices.Equal(got, c.want) {
				t.Fatalf("wrong are %q, want %q: %v", got, c.want, found)
			}
			e, err := redisengine.Open(t.Context(), cfg)
			if err == nil {
				must(t, e.Close(t.Context()))
			}
			var lacks *redisengine.CheckError
			refused := slices.ContainsFunc(c.want, func(name string) bool { return !strings.HasSuffix(name, "?") })
			if refused != errors.As(err, &lacks) {
				t.Fatalf("opening says %v", err)
			}
			for _, f := range found {
				if f.OK() != (f.Remedy == "") {
					t.Errorf("%s is %s, its remedy is %q", f.Subject, f.Standing, f.Remedy)
				}
				if refused && f.Standing == dibs.StandingFail && !strings.Contains(err.Error(), f.Subject) {
					t.Errorf("opening says %v, without %s", err, f.Subject)
				}
			}
		})
	}
}

// A server that stops giving its level is noticed by the next ping.
func TestPingChecksTheLevel(t *testing.T) {
	r := startRedis(t, servers.RedisAlways...)
	e, c := openEngine(t, redisengine.Config{URL: r.URL(), Durability: dibs.LevelDurable}), connect(t, r)
	must(t, e.Ping(t.Context()))
	must(t, c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("appendfsync", "everysec").Build()).Error())
	var lacks *redisengine.CheckError
	if err := e.Ping(t.Context()); !errors.As(err, &lacks) || e.Durability() != dibs.LevelRelaxed {
		t.Errorf("the ping says %v, the level is %s", err, e.Durability())
	}
}

func TestReplicasAreRefused(t *testing.T) {
	replica := replicaOf(t, startRedis(t, asMaster...))
	found, err := redisengine.Check(t.Context(), redisengine.Config{URL: replica.URL()})
	if err != nil || !slices.Contains(wrongIn(found), "role") {
		t.Errorf("a replica is found %v, %v", found, err)
	}
	if e, err := redisengine.Open(t.Context(), redisengine.Config{URL: replica.URL()}); err == nil {
		t.Errorf("an engine opens on a replica: %v", e.Close(t.Context()))
	}
}

// A connection that fails says why, within five seconds, and never how it was
// secured.
func TestFailedConnectionsTell(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, silent.Close()) }()
	locked := startRedis(t)
	c, secured := connect(t, locked), locked.Addr()
	must(t, c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("requirepass", "s3cret").Build()).Error())
	plain := startRedis(t).Addr()
	for url, want := range map[string]string{
		"redis://127.0.0.1:1":                           "connection",
		"redis://user:s3cret@127.0.0.1:1":               "connection",
		"redis://user:s3cret@" + silent.Addr().String(): "connection",
		"redis://:wr0ng@" + secured:                     "authentication",
		"redis://nobody:s3cret@" + secured:              "authentication",
		"redis://" + secured:                            "authentication",
		"rediss://" + plain:                             "connection",
		"redis://" + plain + "?addr=" + plain:           "cluster mode",
		"redis://" + plain + "?master_set=shop":         "connection",
	} {
		begun := time.Now()
		found, err := redisengine.Check(t.Context(), redisengine.Config{URL: url, Durability: dibs.LevelNone})
		took := time.Since(begun)
		must(t, err)
		if len(found) != 1 || found[0].Standing != dibs.StandingFail || found[0].Subject != want || took > 5*time.Second {
			t.Errorf("%s is found %v after %v, want a wrong %s", url, found, took, want)
		}
		e, err := redisengine.Open(t.Context(), redisengine.Config{URL: url, Durability: dibs.LevelNone})
		if err == nil {
			t.Errorf("%s is opened: %v", url, e.Close(t.Context()))
			continue
		}
		for _, text := range []string{err.Error(), found[0].String()} {
			if strings.Contains(text, "s3cret") || strings.Contains(text, "wr0ng") {
				t.Errorf("the password is told: %s", text)
			}
		}
	}
	for _, url := range []string{"redis://user:s3cret/x@host", "redis://user:s3cret@host:port", "redis://:%zzs3cret@host", "s3cret"} {
		if _, err := redisengine.Check(t.Context(), redisengine.Config{URL: url}); err == nil || strings.Contains(err.Error(), "s3cret") {
			found, err := redisengine.Check(t.Context(), redisengine.Config{URL: url})
			for _, f := range found {
				if strings.Contains(f.String(), "s3cret") {
					t.Errorf("the URL %s is found %v, %v", url, found, err)
				}
			}
		}
	}
}

// advised are the rules that the remedy of missing rights names, which stand in
// docs/OPERATIONS.md too.
func advised(t *testing.T, c rueidis.Client, r *servers.Redis) string {
	t.Helper()
	must(t, c.Do(t.Context(), c.B().Arbitrary("ACL", "SETUSER", "poor", "on", ">pw", "~other:*", "+@all").Build()).Error())
	found, err := redisengine.Check(t.Context(), redisengine.Config{URL: "redis://poor:pw@" + r.Addr(), Durability: dibs.LevelNone})
	must(t, err)
	at := slices.IndexFunc(found, func(f dibs.Finding) bool { return f.Subject == "rights" })
	if at < 0 {
		t.Fatalf("the rights were not examined: %v", found)
	}
	_, rules, _ := strings.Cut(found[at].Remedy, "ACL SETUSER name ")
	page, err := os.ReadFile("../../docs/OPERATIONS.md")
	must(t, err)
	advice := strings.NewReplacer("'", "", "\\\n  ", "").Replace(string(page))
	if rules == "" || !strings.Contains(advice, rules) {
		t.Errorf("docs/OPERATIONS.md advises other rights than %q", rules)
	}
	return rules
}

// A user without the right to a command is told which one it is.
func TestRightsAreChecked(t *testing.T) {
	r := startRedis(t)
	c := connect(t, r)
	for rules, want := range map[string]string{
		advised(t, c, r):          "",
		"~dibs:* &* +@all -xadd":  "XADD",
		"~other:* &* +@all":       "NOPERM",
		"~dibs:* &* +@all -hscan": "HSCAN",
	} {
		args := append([]string{"SETUSER", "shop", "reset", "on", ">pw"}, strings.Fields(rules)...)
		must(t, c.Do(t.Context(), c.B().Arbitrary("ACL").Args(args...).Build()).Error())
		cfg := redisengine.Config{URL: "redis://shop:pw@" + r.Addr(), Durability: dibs.LevelNone}
		found, err := redisengine.Check(t.Context(), cfg)
		must(t, err)
		wrong := wrongIn(found)
		text := ""
		for _, f := range found {
			text += f.String() + "\n"
		}
		switch {
		case want == "" && len(wrong) > 0:
			t.Errorf("with %q wrong is %s", rules, text)
		case want == "":
			e := openEngine(t, cfg)
			openSale(t, e, 10, nil)
		case !slices.Contains(wrong, "rights") || !strings.Contains(text, want):
			t.Errorf("with %q %s is not missed: %s", rules, want, text)
		}
	}
	n, err := c.Do(t.Context(), c.B().Keys().Pattern("*{probe}*").Build()).AsStrSlice()
	if err != nil || len(n) > 0 {
		t.Errorf("the check leaves %q, %v", n, err)
	}
}

// A grant that replicas do not confirm is not answered, nor its repeat, nor a
// read of it; once they confirm it, the repeat finds the first result.
func TestReplicatedWaitsForTheReplicas(t *testing.T) {
	master := startRedis(t, asMaster...)
	replica := replicaOf(t, master)
	e := openEngine(t, redisengine.Config{
		URL: master.URL(), Durability: dibs.LevelReplicated, Deadline: time.Second, Patience: time.Second,
	})
	if e.Durability() != dibs.LevelReplicated {
		t.Fatalf("the level is %s", e.Durability())
	}
	shard := openSale(t, openEngine(t, redisengine.Config{
		URL: master.URL(), Durability: dibs.LevelReplicated, Deadline: 20 * time.Second, Patience: 20 * time.Second,
	}), 10, nil)
	other := openEngine(t, redisengine.Config{
		URL: master.URL(), Durability: dibs.LevelReplicated, Deadline: time.Second, Patience: time.Second,
	})
	ask := func(e *redisengine.Engine, user string, key uint64) (dibs.Decision, error) {
		return e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: key, Quantity: 1})
	}
	first, err := ask(e, "ann", 1)
	must(t, err)
	_, err = ask(other, "zoe", 1)
	must(t, err)
	must(t, replica.Process().Signal(syscall.SIGSTOP))
	unknown := func(what string, err error) {
		t.Helper()
		var e *dibs.Error
		if !errors.As(err, &e) || e.Reason != dibs.Unavailable {
			t.Errorf("without the replica %s is %v", what, err)
		}
	}
	d, err := ask(e, "bob", 1)
	unknown("a grant", err)
	var refused *dibs.Error
	if errors.As(err, &refused) && refused.Effect != dibs.EffectUnknown {
		t.Errorf("the effect of a grant that is not confirmed is %v: %+v", refused.Effect, d)
	}
	for _, e := range []*redisengine.Engine{e, other} {
		_, err = ask(e, "bob", 1)
		unknown("a repeat", err)
		_, err = ask(e, "bob", 2)
		unknown("a refusal by the limit", err)
		_, _, err = e.Find(t.Context(), dibs.Position{ShardID: shard, Cursor: dibs.Cursor{Epoch: 1, Seq: 4}})
		unknown("a read", err)
		_, err = e.ReadJournal(t.Context(), shard, dibs.Cursor{}, 10)
		unknown("the journal", err)
	}
	must(t, replica.Process().Signal(syscall.SIGCONT))
	until(t, "the replica", func() bool {
		d, err = ask(e, "bob", 1)
		return err == nil
	})
	if !d.Replayed || d.Grant.Seq != first.Grant.Seq+2 {
		t.Errorf("once the replica confirms, the repeat is %+v", d)
	}
	onlyOnce(t, e, shard, 3)
}
