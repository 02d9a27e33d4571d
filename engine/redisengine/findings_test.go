package redisengine

import (
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
)

// A fault that does not keep the engine from working is a warning, with a remedy.
func TestAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		facts conn.Facts
		want  string
	}{
		"fine":                 {conn.Facts{Used: 79, Most: 100, Skew: 1000}, ""},
		"no maximum is known":  {conn.Facts{Used: 79}, ""},
		"little memory left":   {conn.Facts{Used: 80, Most: 100}, "memory"},
		"a clock that is fast": {conn.Facts{Skew: 1001}, "clock"},
		"a clock that is slow": {conn.Facts{Skew: -1001}, "clock"},
	} {
		got := ""
		for _, f := range advice(&c.facts, false) {
			if !f.OK() {
				got += f.Subject
				if f.Standing != dibs.StandingWarn || f.Remedy == "" {
					t.Errorf("%s: %+v is no warning with a remedy", name, f)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: wrong is %q, want %q", name, got, c.want)
		}
	}
}

// Versions are compared by number.
func TestVersions(t *testing.T) {
	for version, want := range map[[3]int]dibs.Standing{
		{7, 0, 5}: dibs.StandingOK, {7, 0, 15}: dibs.StandingOK, {8, 0, 0}: dibs.StandingOK, {10, 1, 0}: dibs.StandingOK,
		{7, 0, 4}: dibs.StandingWarn, {6, 2, 0}: dibs.StandingWarn,
		{6, 0, 16}: dibs.StandingFail, {5, 0, 0}: dibs.StandingFail, {}: dibs.StandingFail,
	} {
		f := findingsOf(&conn.Facts{Version: version}, &Config{Durability: dibs.LevelNone}, false)[0]
		if f.Subject != "version" || f.Standing != want {
			t.Errorf("version %v is %s, want %s", version, f.Standing, want)
		}
	}
}
