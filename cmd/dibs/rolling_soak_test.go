//go:build soak

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// versionBefore is the commit of the version before this one, whose nodes run when an
// upgrade begins.
const versionBefore = "b7f5ac1"

// programBefore builds the version before, out of the repository's history.
func programBefore(t *testing.T) string {
	t.Helper()
	source, program := t.TempDir(), filepath.Join(t.TempDir(), "dibs-before")
	build := exec.Command("bash", "-euo", "pipefail", "-c",
		`git archive "$1" | tar -x -C "$2" && cd "$2" && CGO_ENABLED=0 go build -trimpath -o "$3" ./cmd/dibs`,
		"build", versionBefore, source, program)
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", versionBefore, err, said)
	}
	return program
}

// TestRollingUpgrade replaces the nodes of the version before one after the other while
// users press: nodes of both versions serve the same campaigns meanwhile. Every yes is
// kept, nothing is sold twice, and everything is sold. Afterwards the version before
// refuses the ledger and says why.
func TestRollingUpgrade(t *testing.T) {
	before := programBefore(t)
	for name, get := range map[string]func() (*servers.Server, error){"mariadb": servers.MariaDB, "postgres": servers.Postgres} {
		t.Run(name, func(t *testing.T) {
			redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(redis.Kill)
			_, ledger, _ := servers.Database(t, get)
			u := &upgrade{cluster: clusterOf(t, before, redis.URL(), ledger, 2), before: before}
			u.redis = redis
			u.roll()
		})
	}
}

// upgrade is a cluster on its way from one version to the next.
type upgrade struct {
	*cluster
	before string
}

// alongStock is more than is sold of the sale that goes on all the time.
const alongStock = 1_000_000

func (u *upgrade) roll() {
	clitest.Publish(u.t, u.admin(0), "along", alongStock)
	along := u.press("along")
	u.whole("both before")
	for i, n := range u.nodes {
		n.signal(u.t, syscall.SIGTERM)
		if code := n.code(u.t); code != 0 {
			u.t.Errorf("node %d ends with %d", i, code)
		}
		n.program = ""
		u.start(n)
		u.ready(i)
		u.whole(fmt.Sprint(i+1, " replaced"))
	}
	along.end()
	told := map[string]string{}
	u.collect(along.presses, told)
	u.kept("along", told)
	u.verify()
	u.t.Logf("%d granted meanwhile", len(told))
	u.refusedBefore()
}

// ready waits until a node is.
func (u *upgrade) ready(i int) {
	u.t.Helper()
	eventually(u.t, time.Minute, fmt.Sprintf("node %d is ready", i), func(ctx context.Context) bool {
		health, err := u.admin(i).Health(ctx)
		return err == nil && health.Ready
	})
}

// whole sells a campaign to its last unit while the nodes are as they are: it is made at
// one node and changed at the other, stock is added and taken back, and no user gets
// more than the limit at either.
func (u *upgrade) whole(state string) {
	u.t.Helper()
	const units = 600
	id := strings.ReplaceAll(state, " ", "-")
	clitest.Publish(u.t, u.admin(1), id, units)
	first := u.granted(0, id, "first")
	if again := u.granted(1, id, "first"); again != first {
		u.t.Errorf("%s: the repeat at the other node is %s, not %s", state, again, first)
	}
	for i := range u.nodes {
		_, _, err := u.user(i, "first").Claim(u.t.Context(), id, 1, "another")
		if err == nil || !strings.Contains(err.Error(), dibs.LimitReached.String()) {
			u.t.Errorf("%s: node %d answers a second claim with %v", state, i, err)
		}
	}
	u.changeStock(0, id, 200)
	u.changeStock(1, id, -100)
	crowd := u.press(id)
	eventually(u.t, 2*time.Minute, state+": everything is sold", func(context.Context) bool { return crowd.refused.Load() > 50 })
	crowd.end()
	told := map[string]string{first: "first"}
	u.collect(crowd.presses, told)
	u.compare(id, told, units+100)
}

// kept fails unless the ledger has what users were told, and nothing else.
func (u *upgrade) kept(id string, told map[string]string) {
	u.t.Helper()
	u.compare(id, told, int64(len(told)))
}

// refusedBefore starts the version before on what the new one has written: it serves
// nothing, and says that the ledger is of a newer version.
func (u *upgrade) refusedBefore() {
	u.t.Helper()
	old := startProgram(u.t, u.before, u.env, "serve", "--listen", "127.0.0.1:0")
	if code := old.code(u.t); code == 0 || !strings.Contains(old.err.String(), "use a newer program") {
		u.t.Errorf("the version before ends with %d and says:\n%s", code, old.err)
	}
	u.verify()
}
