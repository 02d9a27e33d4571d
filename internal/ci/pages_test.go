package ci_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

const (
	// pageAddress and pageKey are what the pages set; a test replaces the address
	// by that of a server of its own.
	pageAddress = "http://127.0.0.1:8080"
	pageKey     = "dibs-dev-admin-key"
	// pageTime bounds one page. The longest waits some ten seconds by itself.
	pageTime = 3 * time.Minute
)

// everyday are the pages that most readers come to first.
var everyday = []string{"COUPONS.md", "ORDERS.md", "REDPACKET.md"}

// built is the program, made once for all tests of this package.
var built struct {
	once   sync.Once
	folder string
	err    error
}

// compiled returns the path of the program.
func compiled(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "dibs-pages-"); built.err != nil {
			return
		}
		// As a release is built, so that the tests of releases find everything compiled.
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built.folder, "../../cmd/dibs")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, said)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.folder, "dibs")
}

// TestMain removes the program when all tests are done.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := servers.StopAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if built.folder != "" {
		_ = os.RemoveAll(built.folder)
	}
	os.Exit(code)
}

// TestPagesRun runs the commands of each page, in their order and in one fresh
// shell, against a fresh dibs dev: all blocks marked sh. No command may fail, but
// those with the remark "# refused". With every change these are the pages of everyday, in
// long campaigns all (TestPagesAreQuick).
func TestPagesRun(t *testing.T) { runPages(t, false) }

func runPages(t *testing.T, all bool) {
	bin := filepath.Dir(compiled(t))
	ran, begun := 0, time.Now()
	t.Cleanup(func() { t.Logf("%d pages ran in %s", ran, time.Since(begun).Round(time.Second)) })
	for _, page := range runnable(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !all && !slices.Contains(everyday, filepath.Base(page)) {
			continue
		}
		if script := shellBlocks(string(text)); script != "" {
			ran++
			t.Run(filepath.Base(page), func(t *testing.T) {
				t.Parallel()
				runPage(t, bin, script, printed(string(text)), received(string(text)))
			})
		}
	}
	if ran < len(everyday) || all && ran < 10 {
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

// printed returns what a page says that its commands print: "It prints `a`, then `b`."
func printed(page string) (lines []string) {
	for _, said := range regexp.MustCompile("It prints (`[^`]+`(?:, then `[^`]+`)*)").FindAllStringSubmatch(page, -1) {
		for _, line := range regexp.MustCompile("`[^`]+`").FindAllString(said[1], -1) {
			lines = append(lines, strings.Trim(line, "`"))
		}
	}
	return lines
}

// received returns the outcomes that a page tells of its commands: "user 7 receives `sold_out`." It
// tells them in paragraphs of sections that have commands; lists and tables say what holds elsewhere too.
func received(page string) (reasons []string) {
	for _, section := range strings.Split("\n"+page, "\n## ") {
		for _, part := range strings.Split(section, "\n\n") {
			if strings.Contains(section, "\n```sh\n") && !strings.HasPrefix(part, "- ") && !strings.HasPrefix(part, "|") {
				for _, m := range regexp.MustCompile("receives `([a-z_]+)`").FindAllStringSubmatch(part, -1) {
					reasons = append(reasons, m[1])
				}
			}
		}
	}
	return reasons
}

// pageShell stands before the commands of a page: what compiles is there already, what
// the page starts ends with it, and each command that fails is printed, but within
// conditions.
const pageShell = `
make() { [ "$1" = build ]; }
trap 'trap - ERR; { kill $(jobs -p); wait; redis-cli -p 6390 shutdown nosave; } >/dev/null 2>&1' EXIT
trap 'echo "FAILED: $BASH_COMMAND"' ERR
`

// pagePorts are those of servers that pages start themselves.
var pagePorts = []string{"6390", "8081", "8082"}

// runPage runs a page's commands and looks at how each ended, and whether what the page
// says is printed, line by line in its order, and answered.
func runPage(t *testing.T, bin, script string, printed, received []string) {
	ctx, cancel := context.WithTimeout(t.Context(), pageTime)
	defer cancel()
	address := startDev(t, filepath.Join(bin, "dibs"))
	refused := regexp.MustCompile(`(?m)^.*# refused.*$`).FindAllString(script, -1)
	script = strings.ReplaceAll(pageShell+script, pageAddress, address)
	for _, port := range pagePorts {
		script = strings.ReplaceAll(script, port, freePort(t))
	}
	shell := exec.CommandContext(ctx, "bash")
	shell.Dir, shell.Stdin = t.TempDir(), strings.NewReader(script)
	// As after make build: the page itself has to say where the program is found.
	if err := os.Symlink(bin, filepath.Join(shell.Dir, "bin")); err != nil {
		t.Fatal(err)
	}
	shell.Env = append(os.Environ(), "TMPDIR="+shell.Dir)
	shell.Env = slices.DeleteFunc(shell.Env, func(v string) bool { return strings.HasPrefix(v, "DIBS_") })
	out, err := shell.CombinedOutput()
	text := string(out)
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	if n := strings.Count(text, "FAILED: "); n != len(refused) {
		t.Errorf("%d commands failed, want %d:\n%s", n, len(refused), text)
	}
	rest := "\n" + text
	for _, line := range printed {
		_, after, found := strings.Cut(rest, "\n"+line+"\n")
		if rest = "\n" + after; !found {
			t.Errorf("the page says that %s is printed:\n%s", line, text)
		}
	}
	for _, reason := range received {
		if !strings.Contains(text, `"reason":"`+reason+`"`) {
			t.Errorf("the page says that somebody receives %s:\n%s", reason, text)
		}
	}
	// The answer that a page shows is a refusal by the rules, and no fault in the
	// request.
	for _, reason := range []string{"invalid_request", "unauthenticated", "forbidden", "not_found", "already_exists", "unavailable", "internal"} {
		if strings.Contains(text, `"reason":"`+reason+`"`) {
			t.Errorf("a command was answered %s:\n%s", reason, text)
		}
	}
}

// lastPort is the one that freePort gave last; test binaries that run beside each other begin at different ones.
var lastPort atomic.Int64

// freePort returns a port of this machine on which nothing listens. It is none of those that systems give to programs
// which ask for any port, since one of these could get it before the page does.
func freePort(t *testing.T) string {
	t.Helper()
	lastPort.CompareAndSwap(0, int64(20_000+os.Getpid()%100*100))
	for range 100 {
		port := strconv.FormatInt(lastPort.Add(1), 10)
		free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil && free.Close() == nil {
			return port
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// startDev starts dibs dev on a free port and returns its address.
func startDev(t *testing.T, dibs string, more ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	dev := exec.CommandContext(ctx, dibs, append([]string{"dev", "--listen", "127.0.0.1:0"}, more...)...)
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
