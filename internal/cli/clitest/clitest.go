package clitest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/program"
)

// The secrets of the servers that tests start.
const (
	Secret = "0123456789abcdef0123456789abcdef"
	Key    = "test-admin-key-0123456789"
)

// Secrets are the settings of those servers.
var Secrets = []string{"DIBS_JWT_SECRET=" + Secret, "DIBS_ADMIN_KEY=" + Key}

// Version is the version of the program that tests run.
const Version = "v0.0.0-test"

// Result is what a verb left when it had ended.
type Result struct {
	Out, Err string
	Code     int
}

// Want fails unless the exit code is right and all the parts were written.
func (r Result) Want(t testing.TB, code int, parts ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("exit code %d, want %d\n%s%s", r.Code, code, r.Out, r.Err)
	}
	for _, part := range parts {
		if !strings.Contains(r.Out+r.Err, part) {
			t.Errorf("says nothing of %q:\n%s%s", part, r.Out, r.Err)
		}
	}
}

// Environ returns the environment without the settings of the user that runs the
// tests, and with those of a test.
func Environ(extra ...string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "DIBS_") {
			env = append(env, pair)
		}
	}
	return append(env, extra...)
}

// Verb is a verb that runs.
type Verb struct {
	Out, Err *Output
	cancel   context.CancelFunc
	ended    chan struct{}
	code     int
}

// Start runs a command line until it ends or the test does.
func Start(t testing.TB, env []string, args ...string) *Verb {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	v := &Verb{Out: NewOutput(), Err: NewOutput(), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(v.ended)
		call := cli.Invocation{Args: args, Environ: Environ(env...), In: strings.NewReader(""), Out: v.Out, Err: v.Err}
		v.code = call.Run(ctx, program.Root(cli.NewBuild(Version, "")))
	}()
	t.Cleanup(func() {
		v.cancel()
		<-v.ended
		if t.Failed() {
			t.Logf("dibs %s wrote:\n%s%s", strings.Join(args, " "), v.Out, v.Err)
		}
	})
	return v
}

// Await waits until one of the outputs matches, and returns the groups of the match.
func (v *Verb) Await(t testing.TB, from *Output, pattern string) []string {
	t.Helper()
	return from.Await(t, v.ended, pattern)
}

// Stop ends the verb as Ctrl-C does, and returns the exit code.
func (v *Verb) Stop(t testing.TB) int {
	t.Helper()
	v.cancel()
	return v.Code(t)
}

// Code waits for the end of the verb and returns the exit code.
func (v *Verb) Code(t testing.TB) int {
	t.Helper()
	select {
	case <-v.ended:
	case <-time.After(Patience):
		t.Fatalf("the verb does not end:\n%s%s", v.Out, v.Err)
	}
	return v.code
}

// Run runs a command line to its end.
func Run(t testing.TB, env []string, args ...string) Result {
	t.Helper()
	v := Start(t, env, args...)
	code := v.Code(t)
	return Result{v.Out.String(), v.Err.String(), code}
}

// Serve serves a data folder on a free port and returns the URL.
func Serve(t testing.TB, data string, args ...string) (*Verb, string) {
	t.Helper()
	v := Start(t, Secrets, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, args...)...)
	return v, v.Await(t, v.Err, `msg=serving url=(\S+)`)[1]
}

// Served serves a new data folder and returns the environment of verbs that call the
// server.
func Served(t testing.TB) []string {
	t.Helper()
	_, url := Serve(t, t.TempDir())
	return []string{"DIBS_URL=" + url, "DIBS_ADMIN_KEY=" + Key}
}

// Admin returns a client with the admin key.
func Admin(t testing.TB, url string) *client.Client {
	return connect(t, url, client.Options{AdminKey: Key})
}

// User returns a client with a user's token.
func User(t testing.TB, url, user string) *client.Client {
	t.Helper()
	token, err := httpapi.IssueToken([]byte(Secret), user, time.Hour)
	must(t, err)
	return connect(t, url, client.Options{Token: token})
}

func connect(t testing.TB, url string, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.New(url, opts)
	must(t, err)
	t.Cleanup(c.CloseIdle)
	return c
}

// WriteFile writes a file into a folder of the test and returns its path.
func WriteFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Until waits for a condition.
func Until(t testing.TB, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.After(Patience)
	for !met() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("after %s: not %s", Patience, what)
		}
	}
}

// Publish makes a campaign of units and opens it.
func Publish(t testing.TB, api *client.Client, id string, units int64) {
	t.Helper()
	_, err := api.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour), Stock: dibs.StockSpec{Units: &units},
	}, "")
	if err == nil {
		_, err = api.Campaigns.Publish(t.Context(), id)
	}
	must(t, err)
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
