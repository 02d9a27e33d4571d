package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "dibs-cli-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	binary = filepath.Join(dir, "dibs")
	if out, err := exec.Command("go", "build", "-o", binary, "-ldflags", "-s -w -X main.version=v0.0.0-test", ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	code = m.Run()
	if err := servers.StopAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// patience bounds every wait; only a broken program uses it up.
const patience = time.Minute

// The secrets that the tests serve with.
const (
	testSecret = "0123456789abcdef0123456789abcdef"
	testKey    = "test-admin-key-0123456789"
)

// output collects what a process writes, and wakes those who wait for it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newOutput() *output { return &output{more: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(b)
}

func (o *output) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.more
}

func (o *output) String() string {
	s, _ := o.read()
	return s
}

// process is the binary, running.
type process struct {
	cmd      *exec.Cmd
	out, err *output
	ended    chan struct{}
	exit     error
}

// cleanEnv is the environment without the settings of whoever runs the tests.
func cleanEnv(extra ...string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "DIBS_") {
			env = append(env, pair)
		}
	}
	return append(env, extra...)
}

// start runs the binary until it ends or the test does.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), out: newOutput(), err: newOutput(), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = cleanEnv(env...), p.out, p.err
	p.cmd.Dir = t.TempDir()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.exit = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("dibs %s wrote:\n%s%s", strings.Join(args, " "), p.out, p.err)
		}
	})
	return p
}

// kill ends the process as a power cut would, as far as a process can tell.
func (p *process) kill() {
	// It may have ended before; then there is nobody to kill.
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// await waits until the output matches, and returns the groups of the match.
func (p *process) await(t *testing.T, from *output, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		text, more := from.read()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-more:
		case <-p.ended:
			// What was written last may not have been seen.
			if m := re.FindStringSubmatch(from.String()); m != nil {
				return m
			}
			t.Fatalf("the process ended (%v) before it wrote %s:\n%s%s", p.exit, pattern, p.out, p.err)
		case <-deadline:
			t.Fatalf("nothing matched %s:\n%s%s", pattern, p.out, p.err)
		}
	}
}

// code waits for the end and returns the exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("the process does not end:\n%s%s", p.out, p.err)
	}
	var exit *exec.ExitError
	if errors.As(p.exit, &exit) {
		return exit.ExitCode()
	}
	if p.exit != nil {
		t.Fatal(p.exit)
	}
	return 0
}

// result is what a finished command said.
type result struct {
	out, err string
	code     int
}

// execute runs the binary to its end.
func execute(t *testing.T, env []string, args ...string) result {
	t.Helper()
	p := start(t, env, args...)
	code := p.code(t)
	return result{p.out.String(), p.err.String(), code}
}

// want fails unless the exit code and all the parts are there.
func (r result) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.err)
	}
	for _, part := range parts {
		if !strings.Contains(r.out+r.err, part) {
			t.Errorf("says nothing of %q:\n%s%s", part, r.out, r.err)
		}
	}
}

// secrets are the settings of the server of most tests.
var secrets = []string{"DIBS_JWT_SECRET=" + testSecret, "DIBS_ADMIN_KEY=" + testKey}

// startServe serves a data folder on a free port and returns its URL.
func startServe(t *testing.T, data string, args ...string) (*process, string) {
	t.Helper()
	p := start(t, secrets, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, args...)...)
	return p, p.await(t, p.err, `msg=serving url=(\S+)`)[1]
}
