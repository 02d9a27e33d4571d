// Package load_test runs the plans of this folder, so that they cannot rot.
package load_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/overload"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/node"
)

const adminKey = "load-test-admin-key"

// serve starts what `dibs dev` serves, behind a handler of the test's own, and
// returns its address.
func serve(t *testing.T, around func(http.Handler) http.Handler) (*node.Service, *url.URL) {
	t.Helper()
	nd, err := node.Open(t.Context(), node.Config{
		Dir: t.TempDir(), Migrate: true,
		// JMeter beside it may take the processors for a moment; nothing is to be refused for that.
		Overload: overload.Config{Target: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := nd.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := nd.Service.Access.EnsureKey(t.Context(), "load", adminKey); err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(nd.Service), AllowDevTokens: true})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(around(handler))
	t.Cleanup(s.Close)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return nd.Service, address
}

// sample is what JMeter says of some requests that went alike.
type sample struct {
	label, code string
	success     bool
}

// The columns of JMeter's default result file.
const (
	columnLabel   = 2
	columnCode    = 3
	columnSuccess = 7
)

// jmeter runs the plan against a server and counts its samples.
func jmeter(t *testing.T, address *url.URL, properties ...string) map[sample]int {
	t.Helper()
	dir := t.TempDir()
	results, log := filepath.Join(dir, "out.jtl"), filepath.Join(dir, "jmeter.log")
	host, port, err := net.SplitHostPort(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-n", "-t", "rush.jmx", "-l", results, "-j", log, "-Jhost=" + host, "-Jport=" + port, "-Jramp=1"}, properties...)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./jmeter.sh", args...)
	cmd.Env = append(os.Environ(), "JVM_ARGS=-Xmx512m -Xss256k")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("jmeter: %v\n%s", err, said)
	}
	raw, err := os.ReadFile(results)
	if err != nil {
		// JMeter ends well even when it could not read its plan.
		why, _ := os.ReadFile(log)
		t.Fatalf("jmeter wrote no results: %v\n%s\n%s", err, said, why)
	}
	counts := map[sample]int{}
	rows := csv.NewReader(bytes.NewReader(raw))
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatal(err)
		}
		if row[columnLabel] != "label" {
			counts[sample{row[columnLabel], row[columnCode], row[columnSuccess] == "true"}]++
		}
	}
}

// TestJMeter runs both rushes at a size that is over soon: 20 units for 200
// requests, and one user's 100 requests.
func TestJMeter(t *testing.T) {
	service, address := serve(t, func(h http.Handler) http.Handler { return h })
	counts := jmeter(t, address, "-Jadmin_key="+adminKey, "-Jrun=test", "-Jstock=20", "-Jmany=200", "-Jone=100")
	want := map[sample]int{
		{"claim many", "201", true}: 20, {"claim many", "409", true}: 180,
		{"claim one", "201", true}: 1, {"claim one", "409", true}: 99,
		{"connect", "200", true}:     300,
		{"create many", "201", true}: 1, {"publish many", "200", true}: 1, {"stats many", "200", true}: 1, {"end many", "200", true}: 1,
		{"create one", "201", true}: 1, {"publish one", "200", true}: 1, {"stats one", "200", true}: 1, {"end one", "200", true}: 1,
		{"verify", "200", true}: 1,
	}
	for s, n := range want {
		if counts[s] != n {
			t.Errorf("%d samples of %v, want %d", counts[s], s, n)
		}
	}
	if len(counts) != len(want) {
		t.Errorf("the samples are %v", counts)
	}
	for id, granted := range map[string]int64{"rush-many-test": 20, "rush-one-test": 1} {
		if stats, err := service.Stats(t.Context(), id); err != nil || stats.Granted != granted {
			t.Errorf("%s: %d granted, %v; want %d", id, stats.Granted, err, granted)
		}
	}
}

// TestJMeterFails proves that the plan can fail: on answers that are neither a
// yes nor a fair refusal, and on numbers that are not the exact ones.
func TestJMeterFails(t *testing.T) {
	var claims atomic.Int64
	_, address := serve(t, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/claims") {
				honest.ServeHTTP(w, r)
				return
			}
			switch claims.Add(1) {
			case 1:
				w.WriteHeader(http.StatusInternalServerError)
			case 2:
				w.WriteHeader(http.StatusConflict)
				// A client that is gone needs no answer.
				_, _ = io.WriteString(w, `{"reason":"paused"}`)
			case 3:
				panic(http.ErrAbortHandler)
			case 4:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				honest.ServeHTTP(w, r)
			}
		})
	})
	// Of 12 requests 4 get nowhere, so that 8 of the 10 units that are due go.
	counts := jmeter(t, address, "-Jadmin_key="+adminKey, "-Jstock=10", "-Jmany=12", "-Jone=0")
	failed := map[string]int{}
	for s, n := range counts {
		if !s.success {
			failed[s.label] += n
		}
	}
	if len(failed) != 2 || failed["claim many"] != 4 || failed["stats many"] != 1 {
		t.Errorf("the failures are %v, want 4 claims and the numbers: %v", failed, counts)
	}
}

// TestUsers: the ready-made tokens are 2,000 different users of `dibs dev`.
func TestUsers(t *testing.T) {
	raw, err := os.ReadFile("users.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]bool{}
	for _, row := range rows[1:] {
		if row[1] != "dev_"+row[0] || !dibs.IsID(row[0]) {
			t.Fatalf("no user of dibs dev: %v", row)
		}
		users[row[0]] = true
	}
	if strings.Join(rows[0], ",") != "user,token" || len(users) != 2000 {
		t.Errorf("the head is %v, and there are %d users", rows[0], len(users))
	}
}
