package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
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
	// As a release is built, so that the tests of releases find everything compiled.
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "-ldflags", "-s -w -X main.version="+clitest.Version, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
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

// process is the binary, running. exit is set when ended is closed.
type process struct {
	cmd      *exec.Cmd
	out, err *clitest.Output
	ended    chan struct{}
	exit     error
}

// start runs the binary until it ends or the test does.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startProgram(t, binary, env, args...)
}

// startProgram is start of any binary.
func startProgram(t *testing.T, program string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), out: clitest.NewOutput(), err: clitest.NewOutput(), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = clitest.Environ(env...), p.out, p.err
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
	// The signal fails when the process has ended before.
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// await waits until one of the outputs matches, and returns the groups of the match.
func (p *process) await(t *testing.T, from *clitest.Output, pattern string) []string {
	t.Helper()
	return from.Await(t, p.ended, pattern)
}

// code waits for the end and returns the exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(5 * clitest.Patience):
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

// execute runs the binary to its end.
func execute(t *testing.T, env []string, args ...string) clitest.Result {
	t.Helper()
	p := start(t, env, args...)
	code := p.code(t)
	return clitest.Result{Out: p.out.String(), Err: p.err.String(), Code: code}
}

// startServe serves a data folder on a free port and returns its URL.
func startServe(t *testing.T, data string, args ...string) (*process, string) {
	t.Helper()
	p := start(t, clitest.Secrets, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, args...)...)
	return p, p.await(t, p.err, `msg=serving url=(\S+)`)[1]
}
