package redisengine_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// ledgerFile is where the ledger is.
func (f *fleet) ledgerFile() string { return strings.TrimPrefix(f.ledger, "sqlite:") }

// dumpLedger copies the ledger as it is now.
func (f *fleet) dumpLedger() (dump string) {
	f.Helper()
	dump = filepath.Join(f.TempDir(), "dump.db")
	db, err := sql.Open("sqlite", f.ledgerFile())
	must(f.T, err)
	_, err = db.ExecContext(f.Context(), "VACUUM INTO ?", dump)
	must(f.T, errors.Join(err, db.Close()))
	return dump
}

// putBack makes the ledger what it was when it was dumped. No node may have it open.
func (f *fleet) putBack(dump string) {
	f.Helper()
	was, err := os.ReadFile(dump)
	must(f.T, err)
	must(f.T, os.WriteFile(f.ledgerFile(), was, 0o600))
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(f.ledgerFile() + beside); err != nil && !errors.Is(err, os.ErrNotExist) {
			f.Fatal(err)
		}
	}
}

// runSQL changes the ledger behind the nodes' backs.
func (f *fleet) runSQL(statements ...string) {
	f.Helper()
	db, err := sql.Open("sqlite", f.ledgerFile()+"?_pragma=busy_timeout(10000)")
	must(f.T, err)
	for _, s := range statements {
		if _, err := db.ExecContext(f.Context(), s); err != nil {
			f.Errorf("%s: %v", s, err)
		}
	}
	must(f.T, db.Close())
}

// loseChanges makes the ledger what it was two changes of the campaign ago, as a backup
// or a promoted standby may be, and runs more statements.
func (f *fleet) loseChanges(more ...string) {
	f.Helper()
	f.runSQL(append([]string{`UPDATE campaigns SET version = version - 2`}, more...)...)
}

// soon waits until a node answers new users so.
func (f *fleet) soon(n *member, want dibs.Reason) {
	f.Helper()
	tried := 0
	f.until(fmt.Sprintf("a claim being answered with %s", want), func() bool {
		tried++
		res, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: fmt.Sprintf("late-%p-%d", n, tried), Key: "k"})
		return err == nil && res.Outcome == want
	})
}

// A ledger that lost changes of a campaign gives the next change a version that the
// engine has had. The engine obeys it all the same, on every node: a campaign that an
// administrator pauses is not sold on.
func TestALedgerThatLostChangesIsObeyed(t *testing.T) {
	for name, again := range map[string]func(f *fleet){
		"while nodes run": func(f *fleet) { f.loseChanges() },
		"while no node runs": func(f *fleet) {
			for _, n := range f.nodes {
				n.close(f.T)
			}
			f.nodes = nil
			f.loseChanges()
			f.join()
			f.join()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.publish("phone", 1000)
			f.wants(f.nodes[1], dibs.Granted, "phone", "early", "k")
			for _, change := range []func() error{
				func() error { _, err := f.nodes[0].Campaigns.Pause(t.Context(), "phone"); return err },
				func() error { _, err := f.nodes[0].Campaigns.Resume(t.Context(), "phone"); return err },
			} {
				must(t, change())
			}
			f.verify()
			again(f)
			_, err := f.nodes[0].Campaigns.Pause(t.Context(), "phone")
			must(t, err)
			for _, n := range f.nodes {
				f.soon(n, dibs.Paused)
			}
			_, err = f.nodes[1].Campaigns.Resume(t.Context(), "phone")
			must(t, err)
			for _, n := range f.nodes {
				f.soon(n, dibs.Granted)
			}
			f.wants(f.nodes[0], dibs.Granted, "phone", "early", "k")
			f.verify()
		})
	}
}

// A campaign that is over by a ledger which lost its extension is not sold by what the
// engine has.
func TestALedgerThatLostAnExtensionEndsIt(t *testing.T) {
	f := newFleet(t, 2)
	f.publish("phone", 1000)
	for i := range 2 {
		ends := time.Now().Add(time.Duration(i+2) * time.Hour)
		_, err := f.nodes[0].Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{EndsAt: &ends})
		must(t, err)
	}
	f.wants(f.nodes[1], dibs.Granted, "phone", "early", "k")
	f.verify()
	f.loseChanges(fmt.Sprintf(`UPDATE campaigns SET ends_at = %d`, time.Now().Add(-time.Second).UnixMilli()))
	for _, n := range f.nodes {
		f.soon(n, dibs.Ended)
	}
	f.wants(f.nodes[0], dibs.Granted, "phone", "early", "k")
	f.verify()
}

// Items that a ledger has lost with their restock are not granted, and what is restocked
// after that is: users get the items that the ledger says they have.
func TestALedgerThatLostItemsIsLoaded(t *testing.T) {
	f := newFleet(t, 2)
	spec := dibs.CampaignSpec{
		ID: "phone", Kind: dibs.Sale, Title: "phone", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Items: []string{"first"}},
	}
	_, err := f.nodes[0].Campaigns.Create(t.Context(), spec)
	must(t, err)
	_, err = f.nodes[0].Campaigns.Publish(t.Context(), "phone")
	must(t, err)
	restock := func(n *member, items ...string) {
		_, err := n.Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Items: items}, "more-"+items[0])
		must(t, err)
	}
	restock(f.nodes[0], "lost-1", "lost-2")
	f.verify()
	f.runSQL(`DELETE FROM items WHERE value LIKE 'lost-%'`, `DELETE FROM adjustments`,
		`UPDATE campaigns SET stock_total = stock_total - 2, stock_left = stock_left - 2`,
		`UPDATE positions SET stock = stock - 2, stock_left = stock_left - 2`)
	restock(f.nodes[1], "later-1", "later-2")
	f.until("the engine to have the ledger's items", func() bool {
		st, err := f.nodes[0].engine.Stats(t.Context(), dibs.ShardID{Campaign: 1})
		return err == nil && st.Head.Epoch > 1 && st.Remaining == 3
	})
	for i, item := range []string{"first", "later-1", "later-2"} {
		c := f.wants(f.nodes[i%2], dibs.Granted, "phone", item, "k").Claim
		if len(c.Items) != 1 || c.Items[0] != item {
			t.Errorf("%s is granted %v", item, c.Items)
		}
	}
	f.wants(f.nodes[0], dibs.SoldOut, "phone", "late", "k")
	f.verify()
	for _, item := range []string{"first", "later-1", "later-2"} {
		list, err := f.nodes[0].ledger.ClaimList(t.Context(), dibs.ClaimFilter{Campaign: 1, UserID: item}, dibs.Page{Limit: 10})
		must(t, err)
		if len(list.Items) != 1 || list.Items[0].Items[0] != item {
			t.Errorf("in the ledger %s has %+v", item, list.Items)
		}
	}
}

// A campaign that left Redis, and comes back on a ledger that was restored from an older
// dump, is not sold: where its journal ended is known although the journal is gone.
func TestAnOlderLedgerOfACampaignThatCameBack(t *testing.T) {
	f := newFleet(t, 0)
	f.engine.KeepRetired = time.Millisecond
	n := f.join()
	f.publish("phone", 10)
	f.wants(n, dibs.Granted, "phone", "early", "k")
	f.verify()
	dump := f.dumpLedger()
	for i := range 5 {
		f.wants(n, dibs.Granted, "phone", fmt.Sprint("lost-", i), "k")
	}
	f.verify()
	n.close(t)
	e := openEngine(t, redisengine.Config{URL: f.redis.URL(), KeepRetired: time.Millisecond})
	shard := dibs.ShardID{Campaign: 1}
	must(t, e.Halt(t.Context(), shard))
	must(t, e.Retire(t.Context(), shard))
	f.until("the journal to be gone", func() bool {
		entries, err := e.ReadJournal(t.Context(), shard, dibs.Cursor{}, 100)
		return err == nil && len(entries) == 0
	})
	f.putBack(dump)
	f.nodes = nil
	n = f.join()
	if _, err := n.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "late", Key: "k"}); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("a claim is answered with %v", err)
	}
	if said := n.Health(t.Context()).Dependencies["campaigns"].Error; !strings.Contains(said, "older than its journal") {
		t.Errorf("the node says %q", said)
	}
	for _, choice := range []audit.OlderLedger{"", audit.OlderLedgerContinue} {
		r, err := n.Audit.Repair(t.Context(), audit.RepairRequest{OlderLedger: choice})
		must(t, err)
		if r.OK != (choice != "") {
			t.Errorf("the repair by %q: %+v", choice, r)
		}
	}
	f.wants(n, dibs.Granted, "phone", "lost-0", "k")
	f.verify()
}
