// Package ci_test checks the scripts that prepare a machine for the tests.
package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// machine is a folder that is all of PATH: what need.sh finds there is what the
// machine has.
type machine struct {
	t   *testing.T
	dir string
}

// newMachine has a shell's usual tools, every command that need.sh looks for,
// an apt-get that notes its arguments and succeeds, and root as its user.
func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dir: t.TempDir()}
	for _, name := range []string{"bash", "cat", "chmod", "dirname", "mktemp", "rm", "touch"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range neededCommands(t) {
		m.has(command, "exit 0")
	}
	m.has("id", "echo 0")
	m.has("apt-get", `echo "$*" >>"$DIR/asked"`)
	return m
}

// need is a line of need.sh: a Debian package, and what shows that each part of it
// that is used is there, by the name of a command or by a path.
type need struct {
	pkg    string
	probes []string
}

// needs reads the list in need.sh.
func needs(t *testing.T) []need {
	t.Helper()
	body, err := os.ReadFile("need.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(body), "\nneeds='\n")
	list, _, ok := strings.Cut(list, "\n'\n")
	if !ok {
		t.Fatal("need.sh has no list of needs")
	}
	var out []need
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		out = append(out, need{f[0], f[1:]})
	}
	return out
}

// neededCommands are the probes that are no paths.
func neededCommands(t *testing.T) []string {
	var out []string
	for _, n := range needs(t) {
		for _, probe := range n.probes {
			if !strings.HasPrefix(probe, "/") {
				out = append(out, probe)
			}
		}
	}
	return out
}

func (m *machine) has(command, script string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, command), []byte("#!/usr/bin/env bash\n"+script+"\n"), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) lacks(command string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.dir, command)); err != nil {
		m.t.Fatal(err)
	}
}

// need runs need.sh and returns what it said and what apt-get was asked for.
func (m *machine) need(packages ...string) (said, asked string, err error) {
	m.t.Helper()
	return m.run("need.sh", packages...)
}

// run runs a script of this folder.
func (m *machine) run(script string, args ...string) (said, asked string, err error) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.dir, "bash"), append([]string{script}, args...)...)
	cmd.Env = []string{"PATH=" + m.dir, "DIR=" + m.dir, "TMPDIR=" + m.dir, "POLICY_RC_D=" + filepath.Join(m.dir, "policy-rc.d")}
	out, err := cmd.CombinedOutput()
	calls, readErr := os.ReadFile(filepath.Join(m.dir, "asked"))
	if readErr != nil && !os.IsNotExist(readErr) {
		m.t.Fatal(readErr)
	}
	return string(out), string(calls), err
}

// installs is an apt-get that brings curl when told to install.
const installs = `echo "$*" >>"$DIR/asked"
case "$*" in *install*) touch "$DIR/curl"; chmod +x "$DIR/curl" ;; esac`

func TestNeedAsksForNothingWhenAllIsThere(t *testing.T) {
	m := newMachine(t)
	if said, asked, err := m.need(); err != nil || asked != "" || said != "" {
		t.Errorf("err %v, said %q, asked apt-get %q", err, said, asked)
	}
	m.lacks("apt-get")
	if said, _, err := m.need(); err != nil {
		t.Errorf("without apt-get, which it does not need: %v\n%s", err, said)
	}
}

func TestNeedInstallsWhatIsMissing(t *testing.T) {
	m := newMachine(t)
	m.lacks("curl")
	m.has("apt-get", installs)
	said, asked, err := m.need()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !strings.Contains(asked, " update\n") || !strings.HasSuffix(asked, " install --no-install-recommends curl\n") {
		t.Errorf("asked apt-get %q", asked)
	}
}

// TestNeedOfSome: of all that is missing it installs what is named.
func TestNeedOfSome(t *testing.T) {
	m := newMachine(t)
	for _, command := range []string{"curl", "jq", "redis-cli"} {
		m.lacks(command)
	}
	m.has("apt-get", installs)
	if said, asked, err := m.need("make", "curl"); err != nil || !strings.HasSuffix(asked, " install --no-install-recommends curl\n") {
		t.Errorf("%v, asked apt-get %q\n%s", err, asked, said)
	}
	if said, _, err := m.need("curl", "make"); err != nil || said != "" {
		t.Errorf("what is named is there, and it says %q, %v", said, err)
	}
	if said, _, err := m.need("curl", "cur"); err == nil || !strings.Contains(said, "need no package cur\n") {
		t.Errorf("for a package without a line it says %q, %v", said, err)
	}
}

// TestNeedLooksAtEveryPart: that one part of a package is there does not show that
// the others are, and a package is asked for once.
func TestNeedLooksAtEveryPart(t *testing.T) {
	m := newMachine(t)
	m.lacks("redis-benchmark")
	if _, asked, err := m.need(); err == nil || !strings.HasSuffix(asked, " redis-tools\n") {
		t.Errorf("without one of two, err %v, asked apt-get %q", err, asked)
	}
	m.lacks("redis-cli")
	if _, asked, err := m.need(); err == nil || !strings.HasSuffix(asked, " --no-install-recommends redis-tools\n") {
		t.Errorf("without both, err %v, asked apt-get %q", err, asked)
	}
}

// TestNeedWithoutAProbe: a line that shows nothing would never be installed.
func TestNeedWithoutAProbe(t *testing.T) {
	body, err := os.ReadFile("need.sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct {
		from *regexp.Regexp
		to   string
	}{
		"no probe":    {regexp.MustCompile(`\nneeds='\n`), "\nneeds='\nsome-package\n"},
		"probe taken": {regexp.MustCompile(`\njmeter-http +\S+\n`), "\njmeter-http\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			script := filepath.Join(m.dir, "need.sh")
			text := change.from.ReplaceAllString(string(body), change.to)
			if text == string(body) {
				t.Fatal("nothing was changed")
			}
			if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if said, asked, err := m.run(script); err == nil || asked != "" || !strings.Contains(said, "has no probe") {
				t.Errorf("err %v, said %q, asked apt-get %q", err, said, asked)
			}
		})
	}
}

func TestNeedSurvivesAFailedUpdate(t *testing.T) {
	m := newMachine(t)
	m.lacks("curl")
	m.has("apt-get", `case "$*" in *update*) exit 100 ;; esac`+"\n"+installs)
	if said, _, err := m.need(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestNeedStartsNoServices: while packages are installed, Debian is told to start
// no service; afterwards all is as it was.
func TestNeedStartsNoServices(t *testing.T) {
	const asks = `case "$*" in *install*) "$DIR/policy-rc.d"; echo "policy $?" >>"$DIR/asked" ;; esac` + "\n" + installs
	m := newMachine(t)
	m.lacks("curl")
	m.has("apt-get", asks)
	if said, asked, err := m.need(); err != nil || !strings.Contains(asked, "policy 101\n") {
		t.Errorf("%v\n%s\nasked apt-get %q", err, said, asked)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "policy-rc.d")); !os.IsNotExist(err) {
		t.Errorf("the policy is still there: %v", err)
	}
	m = newMachine(t)
	m.lacks("curl")
	m.has("apt-get", asks)
	m.has("policy-rc.d", "exit 7")
	if said, asked, err := m.need(); err != nil || !strings.Contains(asked, "policy 7\n") {
		t.Errorf("%v\n%s\nasked apt-get %q", err, said, asked)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "policy-rc.d")); err != nil {
		t.Errorf("the machine's own policy is gone: %v", err)
	}
	// It is taken away after a failure too.
	m = newMachine(t)
	m.lacks("curl")
	m.has("apt-get", "exit 100")
	if _, _, err := m.need(); err == nil {
		t.Error("nothing was installed, and that is no failure")
	}
	if _, err := os.Stat(filepath.Join(m.dir, "policy-rc.d")); !os.IsNotExist(err) {
		t.Errorf("after a failure, the policy is still there: %v", err)
	}
}

func TestNeedFailsWhenItCannotInstall(t *testing.T) {
	for name, breakIt := range map[string]func(m *machine){
		"no apt-get":                   func(m *machine) { m.lacks("apt-get") },
		"not root":                     func(m *machine) { m.has("id", "echo 1000"); m.has("apt-get", installs) },
		"apt-get fails":                func(m *machine) { m.has("apt-get", "exit 100") },
		"apt-get succeeds for nothing": func(m *machine) { m.has("apt-get", "exit 0") },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.lacks("curl")
			breakIt(m)
			said, _, err := m.need()
			if err == nil || !strings.Contains(said, "Please install: curl") {
				t.Errorf("err %v, said %q", err, said)
			}
		})
	}
}
