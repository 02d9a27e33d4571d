package ci_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readmeShell stands before the README's commands: what compiles is there
// already, the server of the first command runs already, and what shows a
// campaign until a key is pressed is stopped after five seconds.
const readmeShell = `
go() { shift 2; if [ "$1" != dev ]; then command dibs "$@"; fi; }
make() { [ "$1" = build ]; }
dibs() { if [ "$2" = watch ]; then timeout --preserve-status -s INT 5 dibs "$@"; else command dibs "$@"; fi; }
trap 'echo "FAILED: $BASH_COMMAND"' ERR
# A job that is a function has its program as a child: the whole group ends.
trap 'trap "" TERM; kill -- -$$; wait' EXIT
`

// readmeServe is where the READMEs start dibs serve, beside the server of their first
// command, which goes on.
const readmeServe = "127.0.0.1:8090"

// TestReadmeRuns runs the commands of the README in one fresh shell, in their order,
// and compares what it shows with what they print. The Chinese one shows the same
// (TestReadmesShowTheSame).
func TestReadmeRuns(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readmeRuns(t, filepath.Dir(compiled(t)), string(text))
}

func readmeRuns(t *testing.T, bin, page string) {
	commands := blocks(page, "sh")
	if len(commands) != 4 {
		t.Fatalf("the README has %d blocks of commands", len(commands))
	}
	serve := "127.0.0.1:" + freePort(t)
	dev := startDev(t, filepath.Join(bin, "dibs"))
	addresses := strings.NewReplacer(pageAddress, dev, readmeServe, serve)
	var script strings.Builder
	script.WriteString(readmeShell)
	for i, block := range commands {
		fmt.Fprintf(&script, "printf '\\n=== %d\\n'\n%s\n", i, addresses.Replace(block))
	}
	ctx, cancel := context.WithTimeout(t.Context(), pageTime)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = t.TempDir()
	shell.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DIBS_") })
	// The defaults of the program are the address of dibs dev, which is taken: what a
	// command needs beside it, the README must set.
	shell.Env = append(shell.Env, "PATH="+bin+":"+os.Getenv("PATH"), "DIBS_LISTEN="+strings.TrimPrefix(dev, "http://"), "DIBS_URL="+dev)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.WaitDelay = 20 * time.Second
	said, err := shell.CombinedOutput()
	printed := regexp.MustCompile(`(?m)^=== \d\n`).Split(string(said), -1)
	// A process that holds the output still runs.
	if errors.Is(err, exec.ErrWaitDelay) || strings.Contains(string(said), "FAILED: ") || len(printed) != 5 {
		t.Fatalf("%v:\n%s", err, said)
	}
	sameMembers(t, blocks(page, "json")[0], printed[2])
	sameOutcomes(t, blocks(page, "")[0], printed[3])
	if production := printed[4]; !strings.Contains(production, "mugs") || !regexp.MustCompile(`(?m)^eyJ[\w-]+\.[\w-]+\.[\w-]+$`).MatchString(production) {
		t.Errorf("in production it prints:\n%s", production)
	}
}

// sameMembers compares an answer with the one that is shown: the same members in the
// same order, and the same values but for the id and the times.
func sameMembers(t *testing.T, shown, printed string) {
	t.Helper()
	var want, got map[string]any
	if err := json.Unmarshal([]byte(shown), &want); err != nil {
		t.Fatalf("the README shows %v: %s", err, shown)
	}
	if err := json.Unmarshal([]byte(printed), &got); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	for _, differs := range []string{"id", "created_at", "updated_at"} {
		if _, has := got[differs]; has {
			got[differs] = want[differs]
		}
	}
	if a, b := membersOf(t, shown), membersOf(t, printed); !slices.Equal(a, b) {
		t.Errorf("the README shows the members %v, the command prints %v", a, b)
	}
	if !maps.EqualFunc(want, got, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("the README shows %v, the command prints %v", want, got)
	}
}

// membersOf lists the members of an object in their order, those of objects in it
// behind a point.
func membersOf(t *testing.T, object string) (names []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	var walk func(prefix string)
	walk = func(prefix string) {
		for d.More() {
			name, err := d.Token()
			var value json.Token
			if err == nil {
				names = append(names, prefix+fmt.Sprint(name))
				value, err = d.Token()
			}
			if err != nil {
				t.Fatal(err)
			}
			switch value {
			case json.Delim('{'):
				walk(prefix + fmt.Sprint(name) + ".")
			case json.Delim('['):
				// Elements have no names.
				for depth := 1; depth > 0; {
					switch inner, err := d.Token(); {
					case err != nil:
						t.Fatal(err)
					case inner == json.Delim('['), inner == json.Delim('{'):
						depth++
					case inner == json.Delim(']'), inner == json.Delim('}'):
						depth--
					}
				}
			}
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	walk("")
	return names
}

// sameOutcomes compares a rehearsal's table with the one that is shown: the rows
// and the last line; 200 are granted, and the rest of the numbers is chance.
func sameOutcomes(t *testing.T, shown, printed string) {
	t.Helper()
	row := regexp.MustCompile(`(?m)^ +(outcome|granted \(repeat\)|granted|sold_out|limit_reached|all) `)
	rows := func(text string) []string {
		var out []string
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		return out
	}
	all := rows(printed)
	for _, want := range rows(shown) {
		if !slices.Contains(all, want) {
			// Which refusals there are besides sold_out is chance too.
			if want != "limit_reached" && want != "granted (repeat)" && want != "all" {
				t.Errorf("the README shows a row %q, the command has %v:\n%s", want, all, printed)
			}
		}
	}
	if !regexp.MustCompile(`(?m)^ +granted +200 `).MatchString(printed) || !strings.Contains(printed, "\nevery promise held\n") {
		t.Errorf("the rehearsal prints:\n%s", printed)
	}
}
