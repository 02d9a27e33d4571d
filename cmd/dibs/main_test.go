package main

import (
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestOneProcessPerFolder starts a second process on a folder in use.
func TestOneProcessPerFolder(t *testing.T) {
	data := t.TempDir()
	p, url := startServe(t, data)
	owner := fmt.Sprintf("dibs: the data folder %s is in use by process %d on ", data, p.cmd.Process.Pid)
	for _, second := range []struct {
		what string
		r    clitest.Result
		hint string
	}{
		{"serve", execute(t, clitest.Secrets, "serve", "--data", data, "--listen", "127.0.0.1:0"), "--data"},
		{"dev", execute(t, nil, "dev", "--data", data, "--listen", "127.0.0.1:0"), "--data"},
		{"verify", execute(t, nil, "verify", "--data", data), "--url"},
	} {
		second.r.Want(t, 1, owner, second.hint)
		if strings.Count(second.r.Err, "\n") != 1 {
			t.Errorf("%s says more than a line:\n%s", second.what, second.r.Err)
		}
	}
	execute(t, clitest.Secrets, "verify", "--url", url).Want(t, 0, "every promise holds")
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	execute(t, nil, "verify", "--data", data).Want(t, 0, "every promise holds")
}

// TestSecondSignal ends a server at once that waits for a request.
func TestSecondSignal(t *testing.T) {
	p, url := startServe(t, t.TempDir(), "--drain", "5m")
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The server asks for the body, so the request is under way; it never comes.
	fmt.Fprintf(conn, "POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", clitest.Key)
	asked := make([]byte, len("HTTP/1.1 100"))
	if _, err := conn.Read(asked); err != nil || string(asked) != "HTTP/1.1 100" {
		t.Fatalf("%q, %v", asked, err)
	}
	p.signal(t, syscall.SIGTERM)
	p.await(t, p.err, "msg=\"stopping")
	// A signal right behind the first is taken for the same one, so this one
	// is sent until the process is gone.
	gone := make(chan struct{})
	defer close(gone)
	go func() {
		again := time.NewTicker(sameSignal / 2)
		defer again.Stop()
		for {
			select {
			case <-gone:
				return
			case <-again.C:
				_ = p.cmd.Process.Signal(syscall.SIGTERM)
			}
		}
	}()
	if code := p.code(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(p.err.String(), "dibs: stopped at once by a second signal\n") {
		t.Errorf("says nothing of it:\n%s", p.err)
	}
}

// TestVersion shows what the linker set.
func TestVersion(t *testing.T) {
	execute(t, nil, "version").Want(t, 0, "v0.0.0-test", runtime.Version())
	r := execute(t, nil, "version", "--output", "json")
	r.Want(t, 0)
	var b cli.Build
	if err := json.Unmarshal([]byte(r.Out), &b); err != nil || b.Version != "v0.0.0-test" || b.Go != runtime.Version() || b.Commit == "" {
		t.Errorf("%+v, %v", b, err)
	}
}
