package ci_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// pageAddress and pageKey are what the pages set; a test replaces the address
	// by that of a server of its own.
	pageAddress = "http://127.0.0.1:8080"
	pageKey     = "dibs-dev-admin-key"
	// pageTime bounds one page. The longest waits some ten seconds by itself.
	pageTime = 3 * time.Minute
)

// TestPagesRun runs the commands of each page, in their order and in one fresh
// shell, against a fresh dibs dev: all blocks marked sh. No command may fail, but
// those with the remark "# refused".
func TestPagesRun(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/dibs").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if script := shellBlocks(string(text)); script != "" {
			ran++
			t.Run(filepath.Base(page), func(t *testing.T) {
				t.Parallel()
				runPage(t, bin, script)
			})
		}
	}
	if ran < 10 {
		t.Errorf("only %d pages have commands to run", ran)
	}
}

// shellBlocks returns the blocks of a page that are marked sh, one after the
// other; not scripts that a page shows whole.
func shellBlocks(page string) string {
	var out strings.Builder
	for _, part := range strings.Split("\n"+page, "\n```sh\n")[1:] {
		if block, _, _ := strings.Cut(part, "\n```"); !strings.HasPrefix(block, "#!") {
			out.WriteString(block + "\n")
		}
	}
	return out.String()
}

// runPage runs a page's commands and looks at how each ended.
func runPage(t *testing.T, bin, script string) {
	ctx, cancel := context.WithTimeout(t.Context(), pageTime)
	defer cancel()
	address := startDev(t, filepath.Join(bin, "dibs"))
	refused := regexp.MustCompile(`(?m)^.*# refused.*$`).FindAllString(script, -1)
	// The trap prints each command that fails, but within conditions.
	script = "trap 'echo \"FAILED: $BASH_COMMAND\"' ERR\n" + strings.ReplaceAll(script, pageAddress, address)
	shell := exec.CommandContext(ctx, "bash")
	shell.Dir, shell.Stdin = t.TempDir(), strings.NewReader(script)
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	shell.Env = slices.DeleteFunc(shell.Env, func(v string) bool { return strings.HasPrefix(v, "DIBS_") })
	out, err := shell.CombinedOutput()
	text := string(out)
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	if n := strings.Count(text, "FAILED: "); n != len(refused) {
		t.Errorf("%d commands failed, want %d:\n%s", n, len(refused), text)
	}
	// What a page shows by an answer is a refusal of the rules, and no fault in the
	// request.
	for _, reason := range []string{"invalid_request", "unauthenticated", "forbidden", "not_found", "already_exists", "unavailable", "internal"} {
		if strings.Contains(text, `"reason":"`+reason+`"`) {
			t.Errorf("a command was answered %s:\n%s", reason, text)
		}
	}
}

// startDev starts dibs dev on a free port and returns its address.
func startDev(t *testing.T, dibs string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	dev := exec.CommandContext(ctx, dibs, "dev", "--listen", "127.0.0.1:0")
	dev.Env = append(os.Environ(), "DIBS_ADMIN_KEY="+pageKey)
	dev.Cancel = func() error { return dev.Process.Signal(os.Interrupt) }
	dev.WaitDelay = time.Minute
	out, err := dev.StdoutPipe()
	if err == nil {
		err = dev.Start()
	}
	if err != nil {
		stop()
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	t.Cleanup(func() {
		stop()
		for lines.Scan() {
		}
		_ = dev.Wait()
	})
	address := ""
	for lines.Scan() {
		if m := regexp.MustCompile(`API +(http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
		// The last line of what dev prints: the campaigns are there.
		if strings.Contains(lines.Text(), "Ctrl-C") {
			break
		}
	}
	if address == "" {
		t.Fatalf("dibs dev did not say where it serves: %v", lines.Err())
	}
	if answer, err := http.Get(address + "/healthz"); err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s/healthz: %v", address, err)
	}
	return address
}
