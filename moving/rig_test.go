package moving_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// fleet is nodes on one Redis, or one Cluster, and one ledger.
type fleet struct {
	*testing.T
	nodes []*node.Node
	// dir has the ledger's file.
	dir string
}

// newFleet starts a Redis and so many nodes.
func newFleet(t *testing.T, nodes int) *fleet {
	t.Helper()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	return newFleetOn(t, nodes, redis.URL(), dibs.LevelDurable)
}

// newFleetOn starts nodes on servers that run.
func newFleetOn(t *testing.T, nodes int, url, level string) *fleet {
	t.Helper()
	return newFleetTuned(t, nodes, url, level, node.ServiceConfig{})
}

// newFleetTuned is newFleetOn with nodes whose service is tuned.
func newFleetTuned(t *testing.T, nodes int, url, level string, tune node.ServiceConfig) *fleet {
	t.Helper()
	f := &fleet{T: t, dir: t.TempDir()}
	for range nodes {
		n, err := node.Open(t.Context(), node.Config{Dir: f.dir, Migrate: true, Engine: url, Durability: level, Service: tune})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		f.nodes = append(f.nodes, n)
	}
	return f
}

// holdLedger keeps everybody from writing to the ledger until release: what leaves a shard
// is on its way for as long.
func (f *fleet) holdLedger() (release func()) {
	f.Helper()
	must := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, node.LedgerFile)+"?_pragma=busy_timeout(20000)")
	must(err)
	conn, err := db.Conn(f.Context())
	must(err)
	_, err = conn.ExecContext(f.Context(), "BEGIN IMMEDIATE")
	must(err)
	return sync.OnceFunc(func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		must(errors.Join(err, conn.Close(), db.Close()))
	})
}

// sale describes a sale over several shards.
func sale(id string, shards int, units, limit int64) dibs.CampaignSpec {
	return dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Limit: &limit, Shards: &shards,
	}
}

// publish publishes a sale over several shards.
func (f *fleet) publish(id string, shards int, units, limit int64) *dibs.Campaign {
	f.Helper()
	return f.publishSpec(sale(id, shards, units, limit))
}

func (f *fleet) publishSpec(spec dibs.CampaignSpec) *dibs.Campaign {
	f.Helper()
	c, err := f.nodes[0].Campaigns.Create(f.Context(), spec)
	if err == nil {
		c, err = f.nodes[0].Campaigns.Publish(f.Context(), c.ID)
	}
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// claim claims through a node until the answer is final, as a client does: what is
// overloaded or unavailable is tried again, with the same key.
func (f *fleet) claim(n *node.Node, c *dibs.Campaign, user, key string, quantity int64) dibs.Result {
	f.Helper()
	// Long enough for a failover on a busy machine.
	over := time.Now().Add(4 * time.Minute)
	for {
		r, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: c.ID, UserID: user, Key: key, Quantity: quantity})
		if err == nil {
			return r
		}
		var e *dibs.Error
		if !errors.As(err, &e) || e.Reason != dibs.Overloaded && e.Reason != dibs.Unavailable || time.Now().After(over) {
			f.Errorf("the claim of %s: %v", user, err)
			return dibs.Result{}
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-f.Context().Done():
		}
	}
}

// ask claims a unit, again while the answer is to come back.
func (f *fleet) ask(n *node.Node, c *dibs.Campaign, user, key string) (dibs.Result, error) {
	for over := time.Now().Add(time.Minute); ; {
		r, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: c.ID, UserID: user, Key: key, Quantity: 1})
		if !errors.Is(err, dibs.ErrOverloaded) || time.Now().After(over) {
			return r, err
		}
	}
}

// soon claims a unit that is there. A node may refuse by what was true until Redis told
// it of the change, and units that came back are there when the outbox has sent them.
func (f *fleet) soon(n *node.Node, c *dibs.Campaign, user string) {
	f.Helper()
	for over := time.Now().Add(10 * time.Second); ; {
		r := f.claim(n, c, user, "key", 1)
		if r.Outcome == dibs.Granted {
			return
		}
		if r.Outcome != dibs.SoldOut || time.Now().After(over) {
			f.Fatalf("a claim of %s, for whom there is a unit: %v", user, r.Outcome)
		}
	}
}

// whole waits until everything is settled and has arrived, and verifies every promise.
func (f *fleet) whole(c *dibs.Campaign, granted, remaining int64) {
	f.Helper()
	n := f.nodes[0]
	for over := time.After(2 * time.Minute); ; {
		st, err := n.Stats(f.Context(), c.ID)
		if err != nil {
			f.Fatal(err)
		}
		waiting, err := n.Ledger.Commands(f.Context(), 0, 1)
		if err != nil {
			f.Fatal(err)
		}
		if st.JournalBacklog == 0 && len(waiting) == 0 {
			if st.Granted != granted || st.Remaining != remaining {
				f.Errorf("%d granted and %d left, want %d and %d", st.Granted, st.Remaining, granted, remaining)
			}
			break
		}
		select {
		case <-over:
			f.Fatalf("not settled within two minutes: %+v, commands %+v", st, waiting)
		case <-time.After(20 * time.Millisecond):
		}
	}
	report, err := n.Audit.Verify(f.Context(), c.ID)
	if err != nil {
		f.Fatal(err)
	}
	if !report.OK {
		f.Errorf("a promise is broken: %+v", report)
	}
}

// usersOf returns users of a shard.
func usersOf(c *dibs.Campaign, shard uint8, n int) (users []string) {
	for i := 0; len(users) < n; i++ {
		if user := fmt.Sprintf("user-%d", i); c.ShardOf(user).Shard == shard {
			users = append(users, user)
		}
	}
	return users
}
