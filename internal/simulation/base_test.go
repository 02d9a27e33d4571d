package simulation

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestBaseIsRenewed: the next run finds an empty ledger, by the connections that the
// last run wrote and read with, also after a dump was restored.
func TestBaseIsRenewed(t *testing.T) {
	ctx := t.Context()
	b, err := openBase(t)
	if err != nil {
		t.Fatal(err)
	}
	insert := func(id string) {
		t.Helper()
		if err := b.ledger.InsertCampaign(ctx, &dibs.Campaign{ID: id, LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 1}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for run := range 3 {
		noon := time.Date(2026, 1, 1+run, 12, 0, 0, 0, time.UTC)
		if err := b.renew(func() time.Time { return noon }); err != nil {
			t.Fatal(err)
		}
		if got := b.now(); !got.Equal(noon) {
			t.Errorf("the clock shows %s, want %s", got, noon)
		}
		if ids := campaignsOf(ctx, t, b); len(ids) != 0 {
			t.Fatalf("run %d begins with %v", run, ids)
		}
		insert("first")
		dump, err := b.dump(ctx)
		if err != nil {
			t.Fatal(err)
		}
		insert("second")
		if ids := campaignsOf(ctx, t, b); len(ids) != 2 {
			t.Fatalf("two were inserted, and there are %v", ids)
		}
		if err := b.restore(ctx, dump); err != nil {
			t.Fatal(err)
		}
		if ids := campaignsOf(ctx, t, b); len(ids) != 1 || ids[0] != "first" {
			t.Fatalf("the dump had the first alone, and there are %v", ids)
		}
	}
}

func campaignsOf(ctx context.Context, t *testing.T, b *base) (ids []string) {
	t.Helper()
	list, err := b.ledger.Campaigns(ctx, nil, "", dibs.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestPolled asks the database again as soon as something was written, by a node or by
// a restore, and not before.
func TestPolled(t *testing.T) {
	ctx := t.Context()
	b, err := openBase(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.renew(time.Now); err != nil {
		t.Fatal(err)
	}
	asked := 0
	ask := func() []string {
		t.Helper()
		ids, err := polled(b, question{what: "campaigns"}, always, func() ([]string, error) {
			asked++
			return campaignsOf(ctx, t, b), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	dump, err := b.dump(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		write func() error
		want  int
	}{
		{"nothing", func() error { return nil }, 0},
		{"an insert", func() error {
			return b.ledger.InsertCampaign(ctx, &dibs.Campaign{ID: "one", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 1}}, nil)
		}, 1},
		{"a restore", func() error { return b.restore(ctx, dump) }, 0},
	} {
		if err := c.write(); err != nil {
			t.Fatal(err)
		}
		before := asked
		for range 3 {
			if got := len(ask()); got != c.want {
				t.Errorf("after %s: %d campaigns, want %d", c.name, got, c.want)
			}
		}
		if asked != before+1 {
			t.Errorf("after %s: asked %d times, want once", c.name, asked-before)
		}
	}
}

// TestHurries: commits of a run do not wait for the disk.
func TestHurries(t *testing.T) {
	b, err := openBase(t)
	if err != nil {
		t.Fatal(err)
	}
	err = b.with(t.Context(), func(c *sql.Conn) error {
		found, err := texts(t.Context(), c, "PRAGMA synchronous")
		if err == nil && !slices.Equal(found, []string{"0"}) {
			t.Errorf("synchronous is %q, want 0", found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
