package rehearsal_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(os.RemoveAll(made), leaks.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// table returns a report as people see it, for failures.
func table(t *testing.T, r *rehearsal.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// rehearse runs one and returns its report.
func rehearse(t *testing.T, cfg rehearsal.Config) *rehearsal.Report {
	t.Helper()
	r, err := rehearsal.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// count returns how many presses had an outcome.
func count(r *rehearsal.Report, outcome string) int64 {
	for _, o := range r.Outcomes {
		if o.Outcome == outcome {
			return o.Count
		}
	}
	return 0
}

// TestManyUsers is the articles' first load at full size: 200 units go to
// exactly 200 of 2,000 users under 5,000 concurrent requests.
func TestManyUsers(t *testing.T) {
	r := rehearse(t, rehearsal.Config{})
	if !r.OK || count(r, "granted") != 200 || r.Stats.Granted != 200 || r.Stats.Remaining != 0 || r.Concurrency != 5000 {
		t.Errorf("200 units to 2,000 users:\n%s", table(t, r))
	}
}

// TestOneUser is the second: of one user's concurrent requests, 10,000 in the
// soak, exactly one is granted.
func TestOneUser(t *testing.T) {
	r := rehearse(t, rehearsal.Config{Scenario: rehearsal.OneUser, Requests: oneUserPresses, Concurrency: oneUserPresses})
	if !r.OK || count(r, "granted") != 1 || r.Stats.Granted != 1 || r.Requests != oneUserPresses {
		t.Errorf("one unit to one user:\n%s", table(t, r))
	}
}

// TestRedPacketOverShards rehearses a red packet whose shares are divided over shards of a
// Redis: every promise is judged and held, that of money too.
func TestRedPacketOverShards(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	r := rehearse(t, rehearsal.Config{
		Kind: dibs.RedPacket, Stock: 300, Users: 250, Requests: 400, Shards: 4, Engine: redis.URL(), Data: t.TempDir(),
	})
	// A user whose only press came while too many waited was told so.
	if !r.OK || count(r, "granted") > 250 || count(r, "granted")+count(r, "overloaded") < 250 {
		t.Errorf("300 shares over 4 shards to 250 users:\n%s", table(t, r))
	}
}
