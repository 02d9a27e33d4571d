package main

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// soon is within what time a verb says what is wrong.
const soon = 30 * time.Second

// secretInURL is a password that must never be shown.
const secretInURL = "hunter2-do-not-show"

// badEngine is a Redis that serve must not start on, as it is set up or as it
// is addressed.
type badEngine struct {
	name string
	// args start the server; replica makes it one of a server that is there.
	args    []string
	replica bool
	// url makes the address, without the scheme, of the server's own.
	url func(addr string) string
	// serve and doctor are what the two verbs say.
	serve, doctor []string
}

func badEngines() []badEngine {
	plain := func(addr string) string { return "redis://" + addr }
	always := servers.RedisAlways
	return []badEngine{
		{
			"wrong password", append([]string{"--requirepass", "right"}, always...), false,
			func(a string) string { return "redis://:" + secretInURL + "@" + a },
			[]string{"correct user and password"},
			[]string{"authentication", "password"},
		},
		{"no password", append([]string{"--requirepass", "right"}, always...), false, plain, []string{"correct user and password"}, []string{"authentication", "password"}},
		{
			"few rights", append([]string{"--user", "app", "on", ">" + secretInURL, "~other:*", "+@all"}, always...), false,
			func(a string) string { return "redis://app:" + secretInURL + "@" + a },
			[]string{"rights"},
			[]string{"rights"},
		},
		{"TLS on a server without", always, false, func(a string) string { return "rediss://" + a }, []string{"correct host, port and TLS"}, []string{"connection", "TLS"}},
		{"a cluster's address", always, false, func(a string) string { return "redis://" + a + "?addr=" + a }, []string{"cluster", "one address"}, []string{"cluster mode", "cluster"}},
		{"a sentinel's address", always, false, func(a string) string { return "redis://" + a + "?master_set=main" }, []string{"sentinel"}, []string{"connection", "sentinel"}},
		{"a replica", always, true, plain, []string{"replica"}, []string{"role", "replica"}},
		{"no journal on the disk", nil, false, plain, []string{"appendonly is no", "set appendonly yes"}, []string{"appendonly"}},
		{"a late journal", []string{"--appendonly", "yes"}, false, plain, []string{"appendfsync is everysec", "set appendfsync always"}, []string{"appendfsync", "always"}},
		{
			"evicting", append([]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, always...), false, plain,
			[]string{"noeviction"},
			[]string{"eviction", "noeviction"},
		},
	}
}

// TestBadEngines starts serve and doctor on every Redis that is no good: they
// say what is wrong and what to do, soon, and show no secret.
func TestBadEngines(t *testing.T) {
	for _, bad := range badEngines() {
		t.Run(bad.name, func(t *testing.T) {
			r, err := servers.StartRedis(t.TempDir(), bad.args...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Kill)
			addr := r.Addr()
			if bad.replica {
				host, port, err := net.SplitHostPort(addr)
				if err != nil {
					t.Fatal(err)
				}
				replica, err := servers.StartRedis(t.TempDir(), append([]string{"--replicaof", host + " " + port}, bad.args...)...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(replica.Kill)
				addr = replica.Addr()
			}
			refusesBoth(t, []string{"--engine", bad.url(addr), "--data", t.TempDir()}, bad.serve, bad.doctor)
		})
	}
}

// TestUnreachable starts them on addresses where nothing listens, and where a server
// takes connections and never answers.
func TestUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := silent.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, addr := range map[string]string{"closed": "127.0.0.1:1", "silent": silent.Addr().String(), "nameless": "no-such-host.invalid:6379"} {
		t.Run("redis/"+name, func(t *testing.T) {
			// They wait more than they work.
			t.Parallel()
			refusesBoth(t, []string{"--engine", "redis://:" + secretInURL + "@" + addr, "--data", t.TempDir()}, []string{addr, "correct host, port and TLS"}, []string{"connection"})
		})
		for _, scheme := range []string{"mysql", "postgres"} {
			t.Run(scheme+"/"+name, func(t *testing.T) {
				t.Parallel()
				refusesBoth(t, []string{"--ledger", scheme + "://u:" + secretInURL + "@" + addr + "/d"}, []string{addr}, []string{"reachable", addr})
			})
		}
	}
}

// TestBadLedgers starts them on databases that are no good.
func TestBadLedgers(t *testing.T) {
	for _, get := range []func() (*servers.Server, error){servers.MariaDB, servers.Postgres} {
		db, good, name := servers.Database(t, get)
		kind, _, _ := strings.Cut(good, ":")
		t.Run(kind, func(t *testing.T) {
			reader := strings.Replace(good, servers.User+":"+servers.Password, "reader:"+secretInURL, 1)
			makeReader(t, db, kind, name)
			for what, bad := range map[string]struct{ ledger, serve, doctor string }{
				"wrong password":   {strings.Replace(good, servers.Password, secretInURL, 1), "correct user or password", "reachable"},
				"missing database": {strings.Replace(good, "/"+name, "/nowhere", 1), "nowhere", "reachable"},
				"few rights":       {reader, "reader", "rights"},
			} {
				t.Run(what, func(t *testing.T) {
					refusesBoth(t, []string{"--ledger", bad.ledger}, []string{bad.serve}, []string{bad.doctor})
				})
			}
			r := execute(t, clitest.Secrets, "doctor", "--ledger", good)
			r.Want(t, cli.ExitOK, "schema", "none yet", "clock", "rights", "commits on the disk")
		})
	}
}

// makeReader makes a user of the database that may read and nothing else.
func makeReader(t *testing.T, db *servers.Server, kind, database string) {
	t.Helper()
	var statements []string
	if kind == "mysql" {
		statements = []string{"CREATE OR REPLACE USER reader@'%' IDENTIFIED BY '" + secretInURL + "'", "GRANT SELECT ON " + database + ".* TO reader@'%'"}
	} else {
		statements = []string{
			"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
			"CREATE ROLE reader LOGIN PASSWORD '" + secretInURL + "'",
		}
	}
	if err := db.Exec(database, statements...); err != nil {
		t.Fatal(err)
	}
}

// refusesBoth runs serve and doctor: both fail soon, say why, and tell nothing
// that is a secret or the program's own business.
func refusesBoth(t *testing.T, args, serve, doctor []string) {
	t.Helper()
	begun := time.Now()
	r := execute(t, clitest.Secrets, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	took := time.Since(begun)
	if r.Code == cli.ExitOK {
		t.Errorf("serve starts")
	}
	r.Want(t, r.Code, serve...)
	if lines := strings.Count(r.Err, "\n"); lines > 2 {
		t.Errorf("serve says more than it has to:\n%s", r.Err)
	}
	discreet(t, "serve", r, took)
	begun = time.Now()
	r = execute(t, clitest.Secrets, append([]string{"doctor", "--output", "json"}, args...)...)
	discreet(t, "doctor", r, time.Since(begun))
	r.Want(t, cli.ExitFailure, doctor...)
	var u struct {
		OK       bool
		Findings []dibs.Finding
	}
	if err := json.Unmarshal([]byte(r.Out), &u); err != nil {
		t.Fatalf("%v:\n%s", err, r.Out)
	}
	if u.OK || !slices.ContainsFunc(u.Findings, func(f dibs.Finding) bool { return f.Standing == dibs.StandingFail }) {
		t.Errorf("doctor finds no fault: %+v", u)
	}
	for _, d := range u.Findings {
		if d.Standing != dibs.StandingOK && d.Remedy == "" {
			t.Errorf("no remedy for %+v", d)
		}
	}
}

func discreet(t *testing.T, verb string, r clitest.Result, took time.Duration) {
	t.Helper()
	if took > soon {
		t.Errorf("%s takes %s", verb, took)
	}
	if all := r.Out + r.Err; strings.Contains(all, secretInURL) || strings.Contains(all, servers.Password) || strings.Contains(all, "goroutine ") {
		t.Errorf("%s shows too much:\n%s", verb, all)
	}
}
