package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEngineProblem(t *testing.T) {
	for engine, want := range map[string]string{
		"memory":                                "",
		"redis://u:pw@h:6379/15?addr=h2:1":      "",
		"rediss://h?master_set=main":            "",
		"unix:///run/redis.sock?db=3":           "",
		"memcached://u:pw@h":                    "must be memory, or the address of Redis",
		"redis:h":                               "must be memory, or the address of Redis",
		"redis://:pw@":                          "names no host",
		"redis://u:pw@h/claims":                 "must end with the number of a database",
		"redis://u:pw@h/65536":                  "must end with the number of a database",
		"redis://u:pw@h?masterset=x":            `there is no option "masterset"`,
		"redis://u:pw%zz@h":                     "the address cannot be read",
		"unix:///run/redis.sock?db=3&password=": `there is no option "password"`,
	} {
		got := EngineProblem(engine)
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "pw") {
			t.Errorf("%s: %q, want %q", engine, got, want)
		}
	}
}

// TestEnginesProblem: several addresses are deployments of Redis, each named once.
func TestEnginesProblem(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("redis://h%d", i)
	}
	for _, c := range []struct {
		engines []string
		want    string
	}{
		{[]string{"memory"}, ""},
		{[]string{"redis://u:pw@a", "rediss://b?addr=c:1"}, ""},
		{[]string{"redis://s?master_set=one", "redis://s?master_set=two"}, ""},
		{many[:64], ""},
		{many, "names 65 deployments, at most 64"},
		{nil, "must be memory"},
		{[]string{"redis://a", "memory"}, "memory is an engine of one process"},
		{[]string{"redis://u:pw@a", "redis://v:pw2@a"}, "redis://a is named twice"},
		{[]string{"redis://a", "http://b"}, "must be memory, or the address of Redis"},
	} {
		got := enginesProblem(c.engines)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "pw") {
			t.Errorf("%v: %q, want %q", c.engines, got, c.want)
		}
	}
}

// TestSeveralEngines: flags, variables and files name several addresses, and a node gets all.
func TestSeveralEngines(t *testing.T) {
	for what, read := range map[string]func() (*Config, string){
		"flags": func() (*Config, string) {
			return read(t, []Rule{StoreRules}, nil, "--engine", "redis://a", "--engine", "redis://b")
		},
		"a variable": func() (*Config, string) {
			return read(t, []Rule{StoreRules}, []string{"DIBS_ENGINE=redis://a redis://b"})
		},
	} {
		c, text := read()
		n := c.Node()
		if text != "" || n.Engine != "redis://a" || !slices.Equal(n.Deployments, []string{"redis://b"}) || !c.OnRedis() {
			t.Errorf("%s: %s, %s and %v", what, text, n.Engine, n.Deployments)
		}
		if got := c.EnginePlace(); got != "redis://a and redis://b" {
			t.Errorf("%s: the engine is shown as %q", what, got)
		}
	}
}

func TestLedgerProblem(t *testing.T) {
	for ledger, want := range map[string]string{
		"": "", "sqlite:a.db": "", "mysql://u:pw@h/d": "",
		"sqlite:": "it must be sqlite: and the path", "oracle://u:pw@h/d": "the address must begin with sqlite:",
	} {
		got := LedgerProblem(ledger)
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "pw") || strings.Contains(got, "sqlledger") {
			t.Errorf("%q: %q, want %q", ledger, got, want)
		}
	}
}
