package trial_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/lab"
)

// TestLab runs two ways in a moment, and shows them in every form.
func TestLab(t *testing.T) {
	page := filepath.Join(t.TempDir(), "lab.html")
	r := clitest.Run(t, nil, "lab", "--strategies", "dibs-embedded", "--users", "40", "--requests", "120", "--stock", "20", "--format", "json", "--html", page)
	r.Want(t, cli.ExitOK)
	var report lab.Report
	if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
		t.Fatalf("%v: %s", err, r.Out)
	}
	x := report.Results[0]
	if len(report.Results) != 1 || x.Orders != 20 || x.Granted != 20 || x.Oversold+*x.Duplicates+*x.Undersold+x.Unkept != 0 || x.Answers() != 120 || x.Verdict() != "safe" {
		t.Errorf("%+v", report)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dibs-embedded", "--strategies dibs-embedded --users 40"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// The page needs nothing from anywhere, and its plane is for ways that ask servers.
	for _, never := range []string{"http://", "https://", "src=", "@import", "<svg"} {
		if strings.Contains(string(text), never) {
			t.Errorf("the page has %q", never)
		}
	}
}

// TestLabStopped writes the page of what was run too.
func TestLabStopped(t *testing.T) {
	page := filepath.Join(t.TempDir(), "lab.html")
	p := clitest.Start(t, nil, "lab", "--strategies", "dibs-embedded", "--users", "40", "--requests", "20000", "--stock", "20",
		"--concurrency", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20", "--html", page)
	p.Await(t, p.Err, " 1 of 20 ")
	if code := p.Stop(t); code != cli.ExitFailure {
		t.Errorf("it ended with %d", code)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "of 20 runs; of the others nothing is known") || !strings.Contains(string(text), "dibs-embedded") {
		t.Errorf("%v: %.500s", err, text)
	}
}

// TestLabList shows what there is.
func TestLabList(t *testing.T) {
	r := clitest.Run(t, nil, "lab", "--list")
	r.Want(t, cli.ExitOK, append(lab.Names(), "read, then write", "oversold, duplicates")...)
	r = clitest.Run(t, nil, "lab", "--list", "--output", "json")
	var list []struct {
		Strategy string
		Breaks   []string
	}
	if err := json.Unmarshal([]byte(r.Out), &list); err != nil || len(list) != len(lab.Names()) || list[0].Strategy == "" || list[0].Breaks == nil {
		t.Errorf("%v: %s", err, r.Out)
	}
}

// TestLabFaults tells what is wrong before anything is started.
func TestLabFaults(t *testing.T) {
	clitest.Run(t, nil, "lab", "--strategies", "niave,dibs-embeddd", "--users", "0", "--stock", "0", "--databases", "oracle").
		Want(t, cli.ExitUsage, `no strategy "niave", did you mean "naive"?`, `did you mean "dibs-embedded"?`, "--users: must be 1 or more", "--stock: must be 1 or more", `no database "oracle"`)
	clitest.Run(t, nil, "lab", "--users", "100", "--stock", "200").Want(t, cli.ExitUsage, "--stock: 200 are more than 100 users could get")
	clitest.Run(t, nil, "lab", "--output", "pdf").Want(t, cli.ExitUsage, "must be table, json or html, not \"pdf\"")
	clitest.Run(t, nil, "lab", "--format", "pdf").Want(t, cli.ExitUsage, "must be table, json or html, not \"pdf\"")
	clitest.Run(t, nil, "lab", "lock").Want(t, cli.ExitUsage, `there is no command "lab lock"`)
	clitest.Run(t, nil, "lab", "locks", "--lockers", "rediss", "--contenders", "0", "--lifetime", "1ms").
		Want(t, cli.ExitUsage, `no locker "rediss", did you mean "redis"?`, "--contenders: must", "--lifetime: must")
	clitest.Run(t, nil, "lab", "--html", filepath.Join(t.TempDir(), "no", "page.html"), "--strategies", "dibs-embedded").Want(t, cli.ExitUsage, "--html: ")
}

// TestLabServers says how to get the servers that are not there.
func TestLabServers(t *testing.T) {
	few := []string{"lab", "--users", "10", "--requests", "20", "--stock", "5"}
	clitest.Run(t, nil, append(few, "--strategies", "naive", "--databases", "mariadb", "--mariadb", "mysql://u:secret-1@127.0.0.1:1/x")...).
		Want(t, cli.ExitUsage, "nothing answers as mariadb at --mariadb: start it, correct the address, or leave --mariadb out")
	clitest.Run(t, nil, append(few, "--strategies", "naive", "--databases", "postgres", "--postgres", "postgres://u:secret-1@127.0.0.1:1/x")...).
		Want(t, cli.ExitUsage, "nothing answers as postgres at --postgres")
	r := clitest.Run(t, nil, append(few, "--strategies", "packet-script", "--databases", "mariadb", "--redis", "redis://:secret-1@127.0.0.1:1/9", "--mariadb", "mysql://u:secret-1@127.0.0.1:1/x")...)
	r.Want(t, cli.ExitUsage, "nothing answers as")
	if strings.Contains(r.Err, "secret-1") {
		t.Errorf("a password is shown: %s", r.Err)
	}
	for kind, at := range map[string]string{
		"redis": "redis://:secret-1@127.0.0.1:1/9", "zookeeper": "zookeeper://u:secret-1@127.0.0.1:1",
		"mariadb": "mysql://u:secret-1@127.0.0.1:1/x", "postgres": "postgres://u:secret-1@127.0.0.1:1/x",
		"majority": "redis://:secret-1@127.0.0.1:1,redis://:secret-1@127.0.0.1:2,redis://:secret-1@127.0.0.1:3",
	} {
		r := clitest.Run(t, nil, "lab", "locks", "--lockers", kind, "--"+kind, at)
		r.Want(t, cli.ExitUsage, "nothing answers at --"+kind+": start it, correct the address, or leave --"+kind+" out")
		if strings.Contains(r.Err, "secret-1") {
			t.Errorf("a password is shown: %s", r.Err)
		}
	}
	clitest.Run(t, nil, "lab", "locks", "--majority", "redis://127.0.0.1:1,redis://127.0.0.1:2").Want(t, cli.ExitUsage, "--majority: must be three addresses or more")
}
