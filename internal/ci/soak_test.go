package ci_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) *\{([^\n]*(?:\n\t[^\n]*|\n$)*)`)
	campaign = regexp.MustCompile(`(?m)^([a-z-]+)\|(\./[a-z/]+|internal/ci/fuzz\.sh)\|(.+)\|(x?\d+)\|(\d+)\|[^|]+$`)
	// levels divides a pattern of -run as the go command does: the first level names the test.
	levels = regexp.MustCompile(`^[^/]+`)
)

// soakCampaign is a line of soak.sh; apart says that it runs only when it is named.
type soakCampaign struct {
	name, dir, tests string
	minutes          int
	apart            bool
}

// soakCampaigns reads the campaigns of soak.sh.
func soakCampaigns(t *testing.T) (all []soakCampaign) {
	t.Helper()
	script, err := os.ReadFile("soak.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, apart, _ := strings.Cut(string(script), "\napart='")
	for _, c := range campaign.FindAllStringSubmatch(string(script), -1) {
		minutes, err := strconv.Atoi(c[5])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, soakCampaign{c[1], c[2], c[3], minutes, strings.Contains(apart, "\n"+c[0]+"\n")})
	}
	if lines := strings.Count(string(script), "|./") + strings.Count(string(script), "|internal/ci/"); len(all) != lines || len(all) < 30 {
		t.Fatalf("%d of %d campaigns of soak.sh can be read", len(all), lines)
	}
	return all
}

// repeated are the tests without rounds that the soak repeats, so that nothing else says that they belong to it.
var repeated = map[string]string{
	"TestCrossings": "./engine/redisengine", "TestContract/linear": "./engine/redisengine", "TestContract/random": "./engine/redisengine",
	"TestEmbedded/linear": "./engine/enginetest", "TestEmbedded/random": "./engine/enginetest",
	"TestACampaignWhileADeploymentIsAway": "./node", "TestACampaignThatLosesADeployment": "./node",
	"TestPostgresLedger/LivesLinear": "./ledger/sqlledger", "TestRollingUpgrade": "./cmd/dibs", "TestPlanWithin": "./cmd/dibs", "TestRehearseMoreShards": "./cmd/dibs", "TestPlanMeasuredRedis": "./cmd/dibs",
	"TestHangingDatabase": "./cmd/dibs", "TestHangingJournal": "./cmd/dibs", "TestRehearseNodesPostgres": "./cmd/dibs",
	"TestClusterMigratesAndFailsOver": "./internal/servers", "TestGalera": "./internal/servers", "TestSentinelFailsOver": "./internal/servers", "TestPostgresPair": "./internal/servers",
	"TestStagedBlocks": "./internal/ci", "TestPagesAreQuick": "./internal/ci",
}

// TestSoakRunsEveryCampaign: each campaign of soak.sh names tests that are there, each test that repeats itself for longer
// when it is told to is in one, and so are the soak's own, those that are repeated from outside, and the fuzz targets.
func TestSoakRunsEveryCampaign(t *testing.T) {
	runs := map[string][]*regexp.Regexp{}
	missing, fuzzed := map[string]bool{}, false
	for test := range repeated {
		missing[test] = true
	}
	for _, c := range soakCampaigns(t) {
		if fuzzed = fuzzed || strings.HasSuffix(c.dir, "fuzz.sh"); strings.HasSuffix(c.dir, ".sh") {
			continue
		}
		whole := strings.Split(c.tests, "/")
		for test, dir := range repeated {
			at := strings.Split(test, "/")
			if dir == c.dir && len(at) == len(whole) && matches(t, whole, at) {
				delete(missing, test)
			}
		}
		pattern, err := regexp.Compile(levels.FindString(c.tests))
		if err != nil {
			t.Fatal(err)
		}
		runs[c.dir] = append(runs[c.dir], pattern)
	}
	for test := range missing {
		t.Errorf("no campaign of soak.sh repeats %s", test)
	}
	if !fuzzed {
		t.Error("no campaign of soak.sh fuzzes")
	}
	for dir, patterns := range runs {
		allAreRun(t, dir, patterns)
	}
}

// matches reports whether a pattern of -run matches a test, level by level.
func matches(t *testing.T, pattern, test []string) bool {
	t.Helper()
	for i, level := range pattern {
		if ok, err := regexp.MatchString(level, test[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// allAreRun holds the patterns of a folder against the tests that are there.
func allAreRun(t *testing.T, dir string, patterns []*regexp.Regexp) {
	t.Helper()
	used := make([]bool, len(patterns))
	for name, body := range testsIn(t, filepath.Join("../..", dir)) {
		covered := false
		for i, p := range patterns {
			if p.MatchString(name) {
				used[i], covered = true, true
			}
		}
		if !covered && (body == soakTag || strings.Contains(body, "rounds(t") || strings.Contains(body, `"SOAK"`)) {
			t.Errorf("%s in %s has rounds or is the soak's alone, and no campaign of soak.sh runs it", name, dir)
		}
	}
	for i, p := range patterns {
		if !used[i] {
			t.Errorf("a campaign of soak.sh names %s, which is no test in %s", p, dir)
		}
	}
}

// soakTag begins the files whose tests the soak alone runs.
const soakTag = "//go:build soak\n"

// testsIn returns the tests of a folder and what is in each; of those that the soak alone runs, soakTag.
func testsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = found[2]
			if strings.HasPrefix(string(text), soakTag) {
				tests[found[1]] = soakTag
			}
		}
	}
	return tests
}

// TestSoakTakesTwoHours holds the sum of what the campaigns are expected to take, and that the guarantees name each.
func TestSoakTakesTwoHours(t *testing.T) {
	minutes, beside := 0, 0
	for _, c := range soakCampaigns(t) {
		switch {
		case c.name == "simulation":
			beside = c.minutes
		case !c.apart:
			minutes += c.minutes
		}
		for _, page := range []string{"../../docs/GUARANTEES.md", "../../docs/zh/GUARANTEES.md"} {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			_, text2, _ := strings.Cut(string(text), "SOAK=100")
			if table, _, _ := strings.Cut(text2, "\n## "); !regexp.MustCompile("(?m)^\\| [^|]*`" + c.name + "`").MatchString(table) {
				t.Errorf("%s has no row for the campaign %s", page, c.name)
			}
		}
	}
	if minutes < 80 || minutes > 120 || beside == 0 || beside > minutes {
		t.Errorf("make soak is expected to take %d minutes, not two hours, and %d beside", minutes, beside)
	}
}

// soak runs soak.sh with a go command that says what a test would.
func soak(t *testing.T, says, share string, names ...string) (out string, failed bool) {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	m.has("go", says)
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"soak.sh"}, names...)...)
	cmd.Env = append(os.Environ(), "PATH="+m.dir+":"+os.Getenv("PATH"), "SOAK="+share, "SOAK_LOGS="+t.TempDir())
	text, err := cmd.CombinedOutput()
	return string(text), err != nil
}

// TestSoakGoesOn: after a campaign that fails, and one that runs nothing, come the others; the table has the rounds and the
// figures of each, and the whole fails.
func TestSoakGoesOn(t *testing.T) {
	const says = `case "$*" in
*redisengine*) echo "--- FAIL: TestKilledServerLosesNothing"; exit 1 ;;
*sqldb*) echo "ok  testing: warning: no tests to run"; exit 0 ;;
*-list*) printf 'FuzzOne\nFuzzTwo\nok  example.org/p 0.1s\n' ;;
*-fuzz*) echo "fuzz: elapsed: 1s, execs: 5 (5/sec)"; echo "fuzz: elapsed: 2s, execs: 21 (9/sec) $*"; echo "--- PASS: Fuzz" ;;
*) echo "    kill_test.go:12: $SOAK kills | none lost $*"; echo "--- PASS: TestKill" ;;
esac`
	out, failed := soak(t, says, "10", "redis-kills", "stalls", "kills-sqlite", "fuzz", "random")
	for _, want := range []string{
		"| `redis-kills` | FAILED | 10 |", "| `stalls` | FAILED | 10 |", "| `kills-sqlite` | ok | 3 |", "3 kills / none lost",
		"| `fuzz` | ok | 3 |", "2 targets, 42 executions", "| `random` | ok | 1 |", "soak: 5 campaigns with SOAK=10", "failed: 2 redis-kills stalls",
	} {
		if !failed || !strings.Contains(out, want) {
			t.Errorf("soak failed %v and does not say %q:\n%s", failed, want, out)
		}
	}
	if out, failed = soak(t, says, "250", "random", "kills-mariadb"); failed || !strings.Contains(out, "-count=25") || !strings.Contains(out, "250 kills") {
		t.Errorf("soak failed %v:\n%s", failed, out)
	}
}

// TestSoakRunsTheSimulationBeside: the simulation has begun while the first campaign runs, and ends with the script when
// that is stopped.
func TestSoakRunsTheSimulationBeside(t *testing.T) {
	dir := t.TempDir()
	m := &machine{t: t, dir: dir}
	m.has("go", `case "$*" in
*simulation*) echo "$$" >`+dir+`/simulates.new; mv `+dir+`/simulates.new `+dir+`/simulates; exec sleep 600 ;;
*) for i in $(seq 600); do [ -e `+dir+`/simulates ] && echo "--- PASS: TestKill" && exit 0; sleep 0.1; done; exit 1 ;;
esac`)
	cmd := exec.CommandContext(t.Context(), "bash", "soak.sh", "kills-sqlite", "simulation")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SOAK_LOGS="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, lines := "", bufio.NewScanner(out)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), " simulation ") {
			break
		}
	}
	if !strings.Contains(said, "kills-sqlite      ok") {
		t.Errorf("the first campaign did not see the simulation begin:\n%s", said)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// The simulation has the pipe of no one, so the script's end is the end of its output.
	for lines.Scan() {
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a script that was stopped ended with 0")
	}
	pid, err := os.ReadFile(filepath.Join(dir, "simulates"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the simulation outlives the script: %v", err)
	}
}

// TestSoakRefusesNonsense: a share that is none, and a campaign that there is not.
func TestSoakRefusesNonsense(t *testing.T) {
	for _, share := range []string{"0", "-1", "many", "1.5", "1000000"} {
		if out, failed := soak(t, "exit 0", share, "stalls"); !failed || !strings.Contains(out, "is no share") {
			t.Errorf("SOAK=%s: failed %v: %s", share, failed, out)
		}
	}
	if out, failed := soak(t, "exit 0", "1", "nonsense"); !failed || !strings.Contains(out, "no campaign is called nonsense") {
		t.Errorf("a campaign that there is not: failed %v: %s", failed, out)
	}
}
