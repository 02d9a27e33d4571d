package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/lab"

	"github.com/dibs-dev/dibs/internal/cli"
)

// TestLab runs two ways in a moment, and shows them in every form.
func TestLab(t *testing.T) {
	page := filepath.Join(t.TempDir(), "lab.html")
	r := execute(t, nil, "lab", "--strategies", "dibs-embedded", "--users", "40", "--requests", "120", "--stock", "20", "--format", "json", "--html", page)
	r.want(t, cli.ExitOK)
	var report lab.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	x := report.Results[0]
	if len(report.Results) != 1 || x.Orders != 20 || x.Granted != 20 || x.Oversold+*x.Duplicates+*x.Undersold+x.Unkept != 0 || x.Answers() != 120 || x.Verdict() != "safe" {
		t.Errorf("%+v", report)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dibs-embedded", "<svg", "--strategies dibs-embedded --users 40"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// The page needs nothing from anywhere.
	for _, never := range []string{"http://", "https://", "src=", "@import"} {
		if strings.Contains(string(text), never) {
			t.Errorf("the page has %q", never)
		}
	}
}

// TestLabList shows what there is.
func TestLabList(t *testing.T) {
	r := execute(t, nil, "lab", "--list")
	r.want(t, cli.ExitOK, append(lab.Names(), "000.3", "oversold, duplicates")...)
}

// TestLabFaults tells what is wrong before anything is started.
func TestLabFaults(t *testing.T) {
	execute(t, nil, "lab", "--strategies", "niave,dibs-embeddd", "--users", "0", "--stock", "0", "--databases", "oracle").
		want(t, cli.ExitUsage, `no strategy "niave", did you mean "naive"?`, `did you mean "dibs-embedded"?`, "--users: must be 1 or more", "--stock: must be 1 or more", `no database "oracle"`)
	execute(t, nil, "lab", "--users", "100", "--stock", "200").want(t, cli.ExitUsage, "--stock: 200 are more than 100 users could get")
	execute(t, nil, "lab", "--format", "pdf").want(t, cli.ExitUsage, "must be table or json or html")
	execute(t, nil, "lab", "lock").want(t, cli.ExitUsage, `there is no command "lab lock"`)
	execute(t, nil, "lab", "locks", "--lockers", "rediss", "--contenders", "0", "--lifetime", "1ms").
		want(t, cli.ExitUsage, `no locker "rediss", did you mean "redis"?`, "--contenders: must", "--lifetime: must")
	execute(t, nil, "lab", "--html", filepath.Join(t.TempDir(), "no", "page.html"), "--strategies", "dibs-embedded").want(t, cli.ExitUsage, "--html: ")
}

// TestLabServers says how to get the servers that are not there.
func TestLabServers(t *testing.T) {
	few := []string{"lab", "--users", "10", "--requests", "20", "--stock", "5"}
	execute(t, nil, append(few, "--strategies", "naive", "--databases", "mariadb", "--mariadb", "mysql://u:secret-1@127.0.0.1:1/x")...).
		want(t, cli.ExitUsage, "nothing answers as mariadb at --mariadb: start it, correct the address, or leave --mariadb out")
	execute(t, nil, append(few, "--strategies", "naive", "--databases", "postgres", "--postgres", "postgres://u:secret-1@127.0.0.1:1/x")...).
		want(t, cli.ExitUsage, "nothing answers as postgres at --postgres")
	r := execute(t, nil, append(few, "--strategies", "packet-script", "--databases", "mariadb", "--redis", "redis://:secret-1@127.0.0.1:1/9", "--mariadb", "mysql://u:secret-1@127.0.0.1:1/x")...)
	r.want(t, cli.ExitUsage, "nothing answers as")
	if strings.Contains(r.err, "secret-1") {
		t.Errorf("a password is shown: %s", r.err)
	}
	for kind, at := range map[string]string{
		"redis": "redis://:secret-1@127.0.0.1:1/9", "zookeeper": "zookeeper://u:secret-1@127.0.0.1:1",
		"mariadb": "mysql://u:secret-1@127.0.0.1:1/x", "postgres": "postgres://u:secret-1@127.0.0.1:1/x",
		"majority": "redis://:secret-1@127.0.0.1:1,redis://:secret-1@127.0.0.1:2,redis://:secret-1@127.0.0.1:3",
	} {
		r := execute(t, nil, "lab", "locks", "--lockers", kind, "--"+kind, at)
		r.want(t, cli.ExitUsage, "nothing answers at --"+kind+": start it, correct the address, or leave --"+kind+" out")
		if strings.Contains(r.err, "secret-1") {
			t.Errorf("a password is shown: %s", r.err)
		}
	}
	execute(t, nil, "lab", "locks", "--majority", "redis://127.0.0.1:1,redis://127.0.0.1:2").want(t, cli.ExitUsage, "--majority: must be three addresses or more")
}

// TestLabLocks kills and pauses a process that holds a lock.
func TestLabLocks(t *testing.T) {
	r := execute(t, nil, "lab", "locks", "--lockers", "redis", "--contenders", "5", "--lifetime", "1s", "--output", "json")
	r.want(t, cli.ExitOK)
	var got []lab.LockResult
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	if len(got) != 1 || got[0].Together != 0 || got[0].PausedMS == nil || !got[0].Stale || !got[0].Refused {
		t.Errorf("%+v", got)
	}
}
