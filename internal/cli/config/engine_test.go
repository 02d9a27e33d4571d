package config

import (
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
