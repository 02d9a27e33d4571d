package sqlledger_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
)

// ordersBegan is when the first of many orders was made, one a second.
var ordersBegan = time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)

// searches are the ways to look for orders, with the index that each has to use
// by the names that the databases give it.
func searches() map[string]struct {
	f       orders.Filter
	indexes []string
} {
	confirmed := dibs.Confirmed
	at := ordersBegan
	places := []string{"PRIMARY", "claims_pkey"}
	return map[string]struct {
		f       orders.Filter
		indexes []string
	}{
		"all":           {orders.Filter{}, []string{"claims_by_time"}},
		"by status":     {orders.Filter{Status: &confirmed, OrderType: dibs.FlashOrder}, []string{"claims_by_time"}},
		"by time":       {orders.Filter{Since: at, Until: at.Add(time.Hour)}, []string{"claims_by_time"}},
		"a user's":      {orders.Filter{UserID: "u7", Since: at, Campaigns: []uint32{1, 2}}, []string{"claims_by_user"}},
		"of a payment":  {orders.Filter{PaymentRef: "p7"}, []string{"payments_by_ref"}},
		"refunds due":   {orders.Filter{RefundDue: true}, []string{"payments_due"}},
		"of a campaign": {orders.Filter{Campaigns: []uint32{1}, Status: &confirmed}, places},
	}
}

// Looking for orders reads by an index on every database, and sorts nothing.
func TestOrdersAreFoundByIndexes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openLedger(t, path)
	defer closeAll(t, l)
	manyOrders(t, l)
	raw(t, path, "ANALYZE claims", "ANALYZE payments")
	for name, s := range searches() {
		plan := sqlledger.Plan(t, l, "EXPLAIN QUERY PLAN ", s.f)
		if strings.Contains(plan, "SCAN") && !strings.Contains(plan, "SCAN c USING INDEX claims_by_time") || strings.Contains(plan, "TEMP B-TREE") ||
			!uses(plan, s.indexes) {
			t.Errorf("%s: %s", name, plan)
		}
	}
}

func TestServerOrdersAreFoundByIndexes(t *testing.T) {
	eachServer(t, func(t *testing.T, server *servers.Server) {
		url, name := server.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		manyOrders(t, l)
		analyze := "ANALYZE claims, payments"
		if strings.HasPrefix(url, "mysql") {
			analyze = "ANALYZE TABLE claims, payments"
		}
		if err := server.Exec(name, analyze); err != nil {
			t.Fatal(err)
		}
		for name, s := range searches() {
			plan := sqlledger.Plan(t, l, "EXPLAIN ", s.f)
			for _, bad := range []string{"Seq Scan", "Sort", " ALL ", "filesort", "temporary"} {
				// PostgreSQL sorts the few of one user.
				if strings.Contains(plan, bad) && !(bad == "Sort" && s.f.UserID != "") {
					t.Errorf("%s: %s: %s", name, bad, plan)
				}
			}
			if !uses(plan, s.indexes) {
				t.Errorf("%s: %s", name, plan)
			}
		}
	})
}

// uses reports whether a plan names one of the indexes; SQLite names none for
// the rows' own places.
func uses(plan string, indexes []string) bool {
	for _, index := range indexes {
		if strings.Contains(plan, index) || index == "PRIMARY" && strings.Contains(plan, "PRIMARY KEY") {
			return true
		}
	}
	return false
}

// manyOrders fills a ledger with enough claims and payments for a database to
// choose its plans by.
func manyOrders(t *testing.T, l *sqlledger.Ledger) {
	t.Helper()
	const claims, paid = 6000, 1000
	c := &dibs.Campaign{
		ID: "c", Kind: dibs.Sale, LimitPerUser: dibs.MaxLimitPerUser, Shards: 1, Version: 1, PayWithin: time.Minute,
		Stock: dibs.Stock{Kind: dibs.Units, Total: claims}, LatePayment: dibs.Reclaim,
	}
	if err := l.InsertCampaign(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	load, err := l.LoadShard(t.Context(), c, dibs.ShardID{Campaign: c.Number}, live.Opener{})
	if err != nil {
		t.Fatal(err)
	}
	b := bigBatch(c, load.Epoch, claims)
	for i := range b.Entries {
		b.Entries[i].At = ordersBegan.Add(time.Duration(i) * time.Second).UnixMilli()
	}
	if err := l.Settle(t.Context(), []live.Batch{b}); err != nil {
		t.Fatal(err)
	}
	var moves [][]dibs.Move
	for i := range paid {
		at := dibs.Position{ShardID: b.Shard, Cursor: b.Entries[i+1].Cursor}
		moves = append(moves, []dibs.Move{{Campaign: c, Position: at, Step: dibs.StepConfirm, At: time.Now(), EventFacts: dibs.EventFacts{Ref: fmt.Sprint("p", i)}}})
	}
	if _, err := l.Move(t.Context(), moves); err != nil {
		t.Fatal(err)
	}
}
