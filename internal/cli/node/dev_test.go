package node_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// startDev starts dev on a free port and returns its curl lines.
func startDev(t *testing.T, args ...string) (*clitest.Verb, []string) {
	t.Helper()
	begun := time.Now()
	p := clitest.Start(t, nil, append([]string{"dev", "--listen", "127.0.0.1:0"}, args...)...)
	p.Await(t, p.Out, "Ctrl-C stops")
	// The aim is a second on a machine that does nothing else; a test cannot hold it on others.
	t.Logf("dev was ready after %s", time.Since(begun).Round(time.Millisecond))
	var lines []string
	for line := range strings.Lines(p.Out.String()) {
		if strings.HasPrefix(strings.TrimPrefix(line, "sleep 1; "), "curl ") {
			lines = append(lines, line)
		}
	}
	return p, lines
}

// paste runs a line as a shell would and reads the JSON that comes back.
func paste(t *testing.T, line string) map[string]any {
	t.Helper()
	out, err := exec.Command("sh", "-c", line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return v
}

// TestDevLines pastes the very lines that dev prints.
func TestDevLines(t *testing.T) {
	p, lines := startDev(t)
	if len(lines) != 7 {
		t.Fatalf("dev prints %d curl lines:\n%s", len(lines), p.Out)
	}
	phone := paste(t, lines[0])
	if phone["status"] != "confirmed" || phone["user_id"] != "42" || phone["amount"].(map[string]any)["amount"] != 99900.0 {
		t.Errorf("the phone: %v", phone)
	}
	if again := paste(t, lines[0]); again["reason"] != "limit_reached" {
		t.Errorf("a second phone: %v", again)
	}
	coupon := paste(t, lines[1])
	if code, _ := coupon["items"].([]any)[0].(string); !strings.HasPrefix(code, "RAIN-") || len(code) != len("RAIN-XXXX-XXXX") {
		t.Errorf("the coupon: %v", coupon)
	}
	if later := paste(t, lines[2]); later["reason"] != "not_started" {
		t.Errorf("tomorrow's ticket: %v", later)
	}
	if mine := paste(t, lines[3]); len(mine["items"].([]any)) != 2 {
		t.Errorf("what user 42 has: %v", mine)
	}
	stats := paste(t, lines[4])
	if stats["granted"] != 1.0 || stats["remaining"] != 199.0 || stats["stock"] != 200.0 {
		t.Errorf("the numbers: %v", stats)
	}
	if share := paste(t, lines[5]); share["result_code"] != "0" || share["kind"] != "redpacket" {
		t.Errorf("the share: %v", share)
	}
	if balances, ok := paste(t, lines[6])["balances"].([]any); !ok || len(balances) > 1 {
		t.Errorf("the balances: %v", balances)
	}
	if strings.Contains(p.Out.String(), "\x1b") {
		t.Error("colours outside of a terminal")
	}
	data := p.Await(t, p.Out, `Data +(\S+) \(removed at the end`)[1]
	if _, err := os.Stat(data); err != nil {
		t.Error(err)
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
}

// TestDevKeepsItsFolder starts dev twice on a folder.
func TestDevKeepsItsFolder(t *testing.T) {
	data := t.TempDir()
	first, lines := startDev(t, "--data", data)
	claim := paste(t, lines[0])
	key := first.Await(t, first.Out, `Admin key +(\S+)`)[1]
	if code := first.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	second, lines := startDev(t, "--data", data)
	if other := second.Await(t, second.Out, `Admin key +(\S+)`)[1]; other != key {
		t.Errorf("the folder's key was %s and is %s", key, other)
	}
	mine := paste(t, lines[3])["items"].([]any)
	if len(mine) != 1 || mine[0].(map[string]any)["id"] != claim["id"] {
		t.Errorf("claimed %v, kept %v", claim, mine)
	}
	if stats := paste(t, lines[4]); stats["granted"] != 1.0 {
		t.Errorf("the numbers: %v", stats)
	}
}

func TestDevRefuses(t *testing.T) {
	clitest.Run(t, nil, "dev", "--listen", "0.0.0.0:8080").Want(t, 2, "listen (flag --listen)", "loopback only")
	clitest.Run(t, nil, "dev", "--listen", "127.0.0.1:0", "--admin-listen", "0.0.0.0:8081").
		Want(t, 2, "admin_listen (flag --admin-listen)", "loopback only")
	clitest.Run(t, nil, "dev", "--ledger", "sqlite:x.db").Want(t, 2, "ledger (flag --ledger)", "--data")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r := clitest.Run(t, nil, "dev", "--listen", ln.Addr().String())
	r.Want(t, 1, "dibs: the address "+ln.Addr().String()+" is in use", "--listen")
	if strings.Count(r.Err, "\n") > 2 || r.Out != "" {
		t.Errorf("more than a line is said:\n%s%s", r.Out, r.Err)
	}
}

// fakeOpener puts a program in place of the one that opens browsers, and returns the file that it
// writes the address to.
func fakeOpener(t *testing.T) (opened string) {
	t.Helper()
	dir := t.TempDir()
	opened = filepath.Join(dir, "opened")
	for _, name := range []string{"xdg-open", "open"} {
		// What is written is there whole or not at all: the test reads it while the program runs.
		script := "#!/bin/sh\nprintf %s \"$1\" > '" + opened + ".new' && mv '" + opened + ".new' '" + opened + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return opened
}

// TestDevOpensTheConsole has dev open its console: with the printed address, whose code signs in.
func TestDevOpensTheConsole(t *testing.T) {
	opened := fakeOpener(t)
	p, _ := startDev(t, "--open")
	login := p.Await(t, p.Out, `Console +(\S+)`)[1]
	var address []byte
	clitest.Until(t, "the opener", func() bool {
		var err error
		address, err = os.ReadFile(opened)
		return err == nil
	})
	if string(address) != login {
		t.Fatalf("opened %q, printed %q", address, login)
	}
	_, code, _ := strings.Cut(login, "#code=")
	signIn := func() int {
		t.Helper()
		at := p.Await(t, p.Out, `API +(\S+)`)[1]
		r, err := http.Post(at+"/v1/session", "application/json", strings.NewReader(`{"code":"`+code+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		return r.StatusCode
	}
	if status := signIn(); status/100 != 2 {
		t.Errorf("the code that was opened: %d", status)
	}
	if status := signIn(); status != http.StatusUnauthorized {
		t.Errorf("the same code again: %d", status)
	}
}

// TestDevWithoutAnOpener serves all the same when nothing opens browsers, and says so; without the
// flag nothing is opened.
func TestDevWithoutAnOpener(t *testing.T) {
	opened := fakeOpener(t)
	startDev(t)
	if _, err := os.Stat(opened); !os.IsNotExist(err) {
		t.Errorf("opened without the flag: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	p, _ := startDev(t, "--open")
	p.Await(t, p.Err, `the browser did not open the console; open the printed address yourself`)
	r, err := http.Get(p.Await(t, p.Out, `Health +(\S+)`)[1])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("the server: %d", r.StatusCode)
	}
}
