package lab

import (
	"strings"
	"testing"
)

func TestPresetsAreValid(t *testing.T) {
	for _, name := range append(Presets(), "") {
		if fs := (Config{Preset: name}).Validate(); len(fs) > 0 {
			t.Errorf("%s: %v", name, fs)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Strategies: []string{"niave"}}, `--strategies: there is no strategy "niave", did you mean "naive"?`},
		{Config{Strategies: []string{"local_lock_erly"}}, `did you mean "local-lock-early"?`},
		{Config{Strategies: []string{"zzzzzz"}}, `no strategy "zzzzzz"; dibs lab --list shows all`},
		{Config{Databases: []string{"postgress"}}, `did you mean "postgres"?`},
		{Config{Preset: "rsh"}, `did you mean "rush"?`},
		{Config{Users: -1}, "--users: must be 1 or more: nobody would press"},
		{Config{Requests: -1, Users: 300}, "--requests: must be from 1"},
		{Config{Users: 300, Requests: 250}, "--requests: 250 presses are fewer than 300 users"},
		{Config{Concurrency: []int{0}}, "--concurrency: must be from 1"},
		{Config{Stock: -1}, "--stock: must be 1 or more"},
		{Config{Stock: 300, Users: 200}, "--stock: 300 are more than 200 users could get"},
		{Config{Time: -1}, "--time: must be above 0"},
	} {
		var all []string
		for _, f := range c.cfg.Validate() {
			all = append(all, f.String())
		}
		if len(all) != 1 || !strings.Contains(all[0], c.want) {
			t.Errorf("%+v: %q, want %q", c.cfg, all, c.want)
		}
	}
}

func TestWhoIsRunWhere(t *testing.T) {
	cfg := Config{Strategies: []string{"dibs-embedded", "naive"}, Concurrency: []int{10, 20}}.WithDefaults()
	var got []string
	for _, j := range jobs(&cfg) {
		got = append(got, j.strategy.Name+"/"+j.database)
	}
	want := "naive/mariadb naive/postgres naive/mariadb naive/postgres dibs-embedded/ dibs-embedded/"
	if strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}
