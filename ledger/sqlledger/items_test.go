package sqlledger_test

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// Giving an item to a claim must look for that item alone: a plan that reads
// the campaign's items makes settling a large campaign stand still.
func TestItemsAreFoundByTheirNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlledger.OpenSQLite(t.Context(), path, sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id, parent, unused int
	var detail string
	if err := db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN `+sqlledger.AssignItem, 1, 0, 1, 5, 2).Scan(&id, &parent, &unused, &detail); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(detail, "n=?") {
		t.Fatalf("the plan is %q", detail)
	}
}

// TestServerItemsAreFoundByTheirNumber settles items of a campaign with very
// many, on servers that know nothing of the tables' sizes yet: a plan that
// reads the campaign's items for each would take minutes.
func TestServerItemsAreFoundByTheirNumber(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		const all, given = 60_000, 4_000
		values := make([]string, all)
		for i := range values {
			values[i] = strconv.Itoa(i)
		}
		c := &dibs.Campaign{ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Items, Total: all}}
		if err := l.InsertCampaign(t.Context(), c, values); err != nil {
			t.Fatal(err)
		}
		plans := strings.HasPrefix(url, "mysql:")
		if plans {
			// Statistics from the time when no item had a claim.
			if err := s.Exec(name, "ALTER TABLE items STATS_AUTO_RECALC = 0", "ANALYZE TABLE items"); err != nil {
				t.Fatal(err)
			}
		}
		load, err := l.LoadShard(t.Context(), c, dibs.ShardID{Campaign: c.Number}, live.Opener{})
		if err != nil {
			t.Fatal(err)
		}
		b := bigBatch(c, load.Epoch, given)
		for i := range given {
			b.Entries[i+1].Items = []uint32{uint32(i * 7)}
		}
		began := time.Now()
		if err := l.Settle(t.Context(), []live.Batch{b}); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		t.Logf("%d of %d items in %s", given, all, took)
		if took > 30*time.Second {
			t.Errorf("%d of %d items took %s", given, all, took)
		}
		if !plans {
			return
		}
		// And claims are asked for their own items alone.
		plan := sqlledger.PlanOfItems(t, l, "EXPLAIN ", dibs.Position{ShardID: b.Shard, Cursor: dibs.Cursor{Epoch: load.Epoch, Seq: given / 2}}) +
			sqlledger.PlanOfAudit(t, l, "EXPLAIN ", c.Number)
		if n := strings.Count(plan, " items_by_claim items_by_claim "); n != 2 {
			t.Errorf("%d of 2 look for items by their claims: %s", n, plan)
		}
	})
}
