package sqlledger_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/ledger/ledgertest"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
)

// withCodes opens a ledger that encrypts items under keys that are made of these bytes.
func withCodes(t *testing.T, url string, bytesOf ...byte) *sqlledger.Ledger {
	t.Helper()
	l := openCodes(t, url, ringOf(t, bytesOf...))
	t.Cleanup(func() { closeAll(t, l) })
	return l
}

func ringOf(t *testing.T, bytesOf ...byte) *keyring.Ring {
	t.Helper()
	ring := &keyring.Ring{}
	if err := ring.Set(keysOf(bytesOf...)); err != nil {
		t.Fatal(err)
	}
	return ring
}

func keysOf(bytesOf ...byte) (secrets [][]byte) {
	for _, b := range bytesOf {
		secrets = append(secrets, bytes.Repeat([]byte{b}, keyring.KeySize))
	}
	return secrets
}

func openCodes(t *testing.T, url string, ring *keyring.Ring) *sqlledger.Ledger {
	t.Helper()
	l, err := sqlledger.Open(t.Context(), url, sqlledger.Options{Keys: ring, EncryptCodes: true, Timeout: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestContractOfEncryptedItems: a ledger that encrypts items does with them all that one of plain items does. With every
// change this is on SQLite, in long campaigns on the servers, too.
func TestContractOfEncryptedItems(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		ledgertest.RunItems(t, func(t *testing.T) func() ledger.Ledger {
			url, ring := "sqlite:"+filepath.Join(freshLedger(t), "ledger.db"), ringOf(t, 1)
			return func() ledger.Ledger { return openCodes(t, url, ring).Parts() }
		})
	})
	if os.Getenv("SOAK") == "" {
		return
	}
	for name, get := range map[string]func() (*servers.Server, error){"mysql": servers.MariaDB, "postgres": pooler(t)} {
		t.Run(name, func(t *testing.T) {
			s, err := get()
			if err != nil {
				t.Fatal(err)
			}
			ready := tables{t: t, s: s, make: func(url string) { closeAll(t, openAt(t, url)) }}
			ledgertest.RunItems(t, func(t *testing.T) func() ledger.Ledger {
				url, ring := ready.take(t), ringOf(t, 1)
				return func() ledger.Ledger { return openCodes(t, url, ring).Parts() }
			})
		})
	}
}

// freeIn are the items of a campaign that no claim has, as a ledger shows them.
func freeIn(t *testing.T, l *sqlledger.Ledger, campaign uint32) (values []string) {
	t.Helper()
	list, err := l.FreeItems(t.Context(), campaign, dibs.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range list.Items {
		values = append(values, it.Value)
	}
	return values
}

// TestItemsAreEncrypted: a ledger of plain items goes on under keys. New items are stored encrypted, those from before
// by Reencrypt; each is read, found and refused twice, whatever form it has. Keys are exchanged, and items become plain
// again. Without the key a start is refused, and nothing is handed out.
func TestItemsAreEncrypted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, _ func(...string)) {
		ctx := t.Context()
		none, one, both := withKeys(t, url), withCodes(t, url, 1), withCodes(t, url, 2, 1)
		// Ten items from before, of which three are granted.
		items, _ := plant(t, none)
		shard := dibs.ShardID{Campaign: items.Number}
		free := []string{"v3", "v4", "v5", "v6", "v7", "v8", "v9"}
		if got := freeIn(t, one, items.Number); !slices.Equal(got, free) {
			t.Fatalf("plain ones: %v", got)
		}
		if err := one.Restock(ctx, campaigns.Restock{Shard: shard, Ref: "r1", Delta: 1, Items: []string{"SPRING-1"}}); err != nil {
			t.Fatal(err)
		}
		longest := strings.Repeat("券", dibs.MaxItemLen)
		if n, err := one.Import(ctx, importOf(shard, "i1", "SPRING-2", longest)); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		free = append(free, "SPRING-1", "SPRING-2", longest)
		stored, commands := sqlledger.StoredItems(t, one, items.Number)
		if all := strings.Join(stored, " ") + commands; strings.Contains(all, "SPRING") || !strings.Contains(all, "v3") {
			t.Errorf("stored: %q", all)
		}
		waiting, err := one.Commands(ctx, 0, 9)
		if err != nil || len(waiting) != 2 || waiting[0].Adjust.Items[0] != "SPRING-1" || waiting[1].Adjust.Items[1] != longest {
			t.Errorf("commands: %+v, %v", waiting, err)
		}
		isTwice(t, one, shard, "v3", "SPRING-1")
		isTwice(t, both, shard, "v3", "SPRING-1", "SPRING-2")

		for _, changed := range []int64{13, 0} {
			if n, err := both.ReencryptItems(ctx, false); err != nil || n != changed {
				t.Errorf("%d were encrypted anew, want %d: %v", n, changed, err)
			}
		}
		underTheNextKey(t, withCodes(t, url, 2), items, free)
		_, loadErr := one.LoadShard(ctx, items, shard, live.Opener{})
		_, freeErr := none.FreeItems(ctx, items.Number, dibs.Page{})
		_, againErr := one.ReencryptItems(ctx, false)
		for _, err := range []error{loadErr, freeErr, againErr, none.CheckItemKeys(ctx), one.CheckItemKeys(ctx)} {
			if !errors.Is(err, keyring.ErrNoKey) {
				t.Errorf("without the key: %v", err)
			}
		}
		// A verb without the setting leaves encrypted items encrypted, and makes them plain when it is told to.
		off := withKeys(t, url, 3, 2)
		for _, plain := range []bool{false, true} {
			if n, err := off.ReencryptItems(ctx, plain); err != nil || n != 13 {
				t.Errorf("%d were stored anew, plain: %t: %v", n, plain, err)
			}
			stored, _ := sqlledger.StoredItems(t, off, items.Number)
			if slices.Contains(stored, "v3") != plain {
				t.Errorf("stored, plain: %t: %q", plain, stored)
			}
		}
		if got := freeIn(t, none, items.Number); !slices.Equal(got, free) {
			t.Errorf("plain again: %v", got)
		}
	})
}

// underTheNextKey checks the ledger of TestItemsAreEncrypted once all is under another key, which next has.
func underTheNextKey(t *testing.T, next *sqlledger.Ledger, items *dibs.Campaign, free []string) {
	t.Helper()
	ctx, shard := t.Context(), dibs.ShardID{Campaign: items.Number}
	if got := freeIn(t, next, items.Number); !slices.Equal(got, free) || next.CheckItemKeys(ctx) != nil {
		t.Errorf("with the next key: %v", got)
	}
	if stored, _ := sqlledger.StoredItems(t, next, items.Number); strings.Contains(strings.Join(stored, " "), "v3") {
		t.Errorf("stored: %q", stored)
	}
	isTwice(t, next, shard, "v3", "SPRING-2")
	found, err := next.OrderList(ctx, orders.Filter{Code: "v1", Campaigns: []uint32{items.Number}}, dibs.Page{})
	if err != nil || len(found.Items) != 1 || !slices.Equal(found.Items[0].Items, []string{"v1", "v2"}) {
		t.Errorf("by code: %+v, %v", found, err)
	}
	waiting, err := next.Commands(ctx, 0, 9)
	if err != nil || len(waiting) != 2 || waiting[0].Adjust.Items[0] != "SPRING-1" || waiting[1].Adjust.Items[0] != "SPRING-2" {
		t.Errorf("commands with the next key: %+v, %v", waiting, err)
	}
	load, err := next.LoadShard(ctx, items, shard, live.Opener{})
	if err != nil || load.Items[3] != "v3" || load.Items[10] != "SPRING-1" {
		t.Errorf("loaded: %v, %v", load, err)
	}
}

// TestCodesOfTwoKeys: keys are exchanged in a process that runs, beside one that has not read the new one yet, and while
// users claim. Each reads what the other wrote, as long as both have the keys of both.
func TestCodesOfTwoKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, _ func(...string)) {
		ctx := t.Context()
		ring := ringOf(t, 1)
		node := openCodes(t, url, ring)
		defer closeAll(t, node)
		other := withCodes(t, url, 1, 2)
		items, _ := plant(t, node)
		shard := dibs.ShardID{Campaign: items.Number}
		if err := ring.Set(keysOf(2, 1)); err != nil {
			t.Fatal(err)
		}
		if n, err := node.Import(ctx, importOf(shard, "new key", "n1", "n2")); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		if n, err := other.Import(ctx, importOf(shard, "old key", "o1")); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		want := []string{"v3", "v4", "v5", "v6", "v7", "v8", "v9", "n1", "n2", "o1"}
		for name, l := range map[string]*sqlledger.Ledger{"the one with the new key": node, "the other": other} {
			if got := freeIn(t, l, items.Number); !slices.Equal(got, want) {
				t.Errorf("%s reads %v", name, got)
			}
			isTwice(t, l, shard, "v3", "n1", "o1")
		}
		if n, err := node.ReencryptItems(ctx, false); err != nil || n != 11 {
			t.Errorf("%d were encrypted anew: %v", n, err)
		}
		// A claim of an item, while the old key goes.
		load, err := node.LoadShard(ctx, items, shard, live.Opener{})
		if setErr := ring.Set(keysOf(2)); err != nil || setErr != nil {
			t.Fatal(err, setErr)
		}
		b := bigBatch(items, load.Epoch, 1)
		b.From, b.Entries[0].Prev = load.Position, load.Position
		b.Entries[1].Items = []uint32{12}
		if err := node.Settle(ctx, []live.Batch{b}); err != nil {
			t.Fatal(err)
		}
		found, err := node.Claim(ctx, dibs.Position{ShardID: shard, Cursor: b.To})
		if err != nil || !slices.Equal(found.Items, []string{"o1"}) {
			t.Errorf("the claim: %+v, %v", found, err)
		}
		if a, err := node.Audit(ctx, items); err != nil || len(a.BadItems) > 0 {
			t.Errorf("the audit: %+v, %v", a, err)
		}
	})
}

// TestUpgradeCodes: a ledger of before the encryption keeps its items, and the longest one fits encrypted. An older
// program does not open it any more.
func TestUpgradeCodes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx, longest := t.Context(), strings.Repeat("𝄞", dibs.MaxItemLen)
		l := openAt(t, url)
		c := &dibs.Campaign{
			ID: "codes", Kind: dibs.Coupon, Title: "codes", StartsAt: time.UnixMilli(1), EndsAt: time.UnixMilli(2), State: dibs.Draft,
			Stock: dibs.Stock{Kind: dibs.Items, Total: 2}, LimitPerUser: 1, LatePayment: dibs.Reclaim, Shards: 1, Version: 1,
		}
		if err := l.InsertCampaign(ctx, c, []string{longest, "a"}); err != nil {
			t.Fatal(err)
		}
		closeAll(t, l)
		raw(migrationsDown(t, url, 24)...)
		if _, err := sqlledger.Open(ctx, url, sqlledger.Options{Keys: ringOf(t, 1), EncryptCodes: true}); !errors.Is(err, sqlledger.ErrSchema) {
			t.Errorf("the ledger of before is opened as it is: %v", err)
		}
		closeAll(t, openAt(t, url))
		l = withCodes(t, url, 1)
		if n, err := l.ReencryptItems(ctx, false); err != nil || n != 2 {
			t.Errorf("%d were encrypted: %v", n, err)
		}
		if got := freeIn(t, l, c.Number); !slices.Equal(got, []string{longest, "a"}) {
			t.Errorf("after the upgrade: %q", got)
		}
	})
}

// importOf is an import of items, a line each.
func importOf(shard dibs.ShardID, ref string, items ...string) campaigns.Import {
	return campaigns.Import{Shard: shard, Ref: ref, Count: int64(len(items)), Each: func(take func(int, string) error) error {
		for i, item := range items {
			if err := take(i+1, item); err != nil {
				return err
			}
		}
		return nil
	}}
}

// isTwice fails unless each item is refused by its place, in a restock and in an import, and nothing else is.
func isTwice(t *testing.T, l *sqlledger.Ledger, shard dibs.ShardID, items ...string) {
	t.Helper()
	for _, item := range items {
		for way, err := range map[string]error{
			"/items/1": l.Restock(t.Context(), campaigns.Restock{Shard: shard, Ref: "twice " + item, Delta: 2, Items: []string{"new", item}}),
			"/lines/2": second(l.Import(t.Context(), importOf(shard, "twice "+item, "new", item))),
		} {
			var e *dibs.Error
			if !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].Field != way {
				t.Errorf("%s by %s: %v", item, way, err)
			}
		}
	}
}

func second(_ int64, err error) error { return err }
