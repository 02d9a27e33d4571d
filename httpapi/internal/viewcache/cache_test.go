package viewcache

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
)

// slowCatalog has one campaign, phone, whose view is read when all readers are there.
type slowCatalog struct {
	now     dibs.Snapshot
	readers sync.WaitGroup
	views   atomic.Int64
	product dibs.Product
}

func (c *slowCatalog) Get(_ context.Context, id string) (dibs.Snapshot, error) {
	if id != "phone" {
		return dibs.Snapshot{}, dibs.ErrNotFound
	}
	c.readers.Done()
	return c.now, nil
}

func (*slowCatalog) CatalogVersion() int64 { return 1 }

func (c *slowCatalog) List(context.Context, bool, string, dibs.Page) (dibs.List[dibs.Campaign], error) {
	return dibs.List[dibs.Campaign]{Items: []dibs.Campaign{*c.now.Campaign}}, nil
}

func (c *slowCatalog) CampaignView(_ context.Context, campaign *dibs.Campaign, _ bool) (api.CampaignView, error) {
	c.views.Add(1)
	c.readers.Wait()
	return api.CampaignViewOf(campaign, c.now.Remaining, &c.product, false), nil
}

// plainSite makes pages of titles.
type plainSite struct{}

func (plainSite) CampaignPage(v api.CampaignView) ([]byte, error) { return []byte(v.Title), nil }

func (plainSite) Policy() string { return "default-src 'none'" }

func newSlow(t *testing.T, readers int) (*Cache, *slowCatalog) {
	t.Helper()
	catalog := &slowCatalog{product: dibs.Product{ID: "p", Name: "A phone", Status: dibs.OnSale}, now: dibs.Snapshot{
		Campaign:  &dibs.Campaign{ID: "phone", Kind: dibs.Sale, Title: "Phone", ProductID: "p", Version: 1},
		Phase:     dibs.PhaseOpen,
		Remaining: 5, Mark: dibs.Mark{Version: 1},
	}}
	catalog.readers.Add(readers)
	respond, err := web.NewResponder(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return New(catalog, plainSite{}, respond, func(http.ResponseWriter, *http.Request) error { return nil }, time.Now), catalog
}

// However many readers come first at the same time, the ledger is read once.
func TestFirstReadersReadOnce(t *testing.T) {
	const n = 50
	cache, catalog := newSlow(t, n)
	var readers sync.WaitGroup
	for range n {
		readers.Go(func() {
			if page, err := cache.page(t.Context(), "phone"); err != nil || page.remaining != 5 {
				t.Errorf("%+v, %v", page, err)
			}
		})
	}
	readers.Wait()
	if n := catalog.views.Load(); n != 1 {
		t.Errorf("the ledger was read %d times", n)
	}
}

// A campaign is shown with all that users may know of its product.
func TestPageHasTheWholeProduct(t *testing.T) {
	cache, catalog := newSlow(t, 1)
	at := time.Now().UTC().Round(0)
	catalog.product = dibs.Product{
		ID: "p", Name: "A phone", Thumbnail: "https://shop.example/p.png", Description: "It rings", Status: dibs.OffSale,
		Price: &dibs.Money{Amount: 5, Currency: "CNY"}, PayWithin: time.Minute, CreatedAt: at, UpdatedAt: at,
	}
	page, err := cache.page(t.Context(), "phone")
	if err != nil {
		t.Fatal(err)
	}
	want, err := web.EncodeJSON(api.CampaignViewOf(catalog.now.Campaign, 5, &catalog.product, false))
	if err != nil || string(page.json.Body) != string(want) {
		t.Errorf("%s, not\n%s, %v", page.json.Body, want, err)
	}
}

// Ids of campaigns that there are not take no memory.
func TestUnknownIDsAreNotKept(t *testing.T) {
	cache, _ := newSlow(t, 0)
	r := httptest.NewRequest("GET", "/v1/campaigns/x", nil)
	for _, id := range []string{"a", "b", "c"} {
		r.SetPathValue("id", id)
		if status, err := cache.Campaign(httptest.NewRecorder(), r); status != 0 || !errors.Is(err, dibs.ErrNotFound) {
			t.Errorf("%s: %d, %v", id, status, err)
		}
	}
	cache.entries.Range(func(id, _ any) bool {
		t.Errorf("the cache has %v", id)
		return true
	})
}

// Whoever may ask no more is refused before the catalog is asked, for campaigns without a page alone.
func TestUnknownIDsAreCounted(t *testing.T) {
	cache, catalog := newSlow(t, 0)
	enough, asked := errors.New("enough"), 0
	cache.unknown = func(http.ResponseWriter, *http.Request) error {
		if asked++; asked > 1 {
			return enough
		}
		return nil
	}
	for _, c := range []struct {
		id   string
		want error
	}{{"phone", nil}, {"none", enough}, {"phone", nil}} {
		r := httptest.NewRequest("GET", "/v1/campaigns/x", nil)
		r.SetPathValue("id", c.id)
		if c.want == nil {
			catalog.readers.Add(1)
		}
		if _, err := cache.Campaign(httptest.NewRecorder(), r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.id, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestKeepFor(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		starts time.Duration
		phase  dibs.Phase
		want   time.Duration
	}{
		{time.Hour, dibs.PhaseUpcoming, web.MaxKeep},
		{4 * time.Second, dibs.PhaseUpcoming, 4 * time.Second},
		{time.Millisecond, dibs.PhaseUpcoming, time.Second},
		{-time.Millisecond, dibs.PhaseUpcoming, time.Second},
		{-time.Hour, dibs.PhaseOpen, time.Second},
		{-time.Hour, dibs.PhaseSoldOut, time.Second},
		{-time.Hour, dibs.PhaseEnded, web.MaxKeep},
	} {
		if got := KeepFor(now, now.Add(c.starts), c.phase); got != c.want {
			t.Errorf("%s, starting in %s: %s, want %s", c.phase, c.starts, got, c.want)
		}
	}
}

// A list that was made long before a campaign begins is not kept beyond its begin.
func TestListIsNotKeptBeyondABegin(t *testing.T) {
	cache, catalog := newSlow(t, 0)
	begin := time.Now().Add(30 * time.Second)
	catalog.now.Phase, catalog.now.Campaign.StartsAt = dibs.PhaseUpcoming, begin
	for _, c := range []struct {
		before time.Duration
		keep   []string
	}{{30 * time.Second, web.KeepFor(web.MaxKeep)}, {3 * time.Second, web.KeepFor(3 * time.Second)}, {time.Millisecond, web.KeepFor(time.Second)}} {
		cache.now = func() time.Time { return begin.Add(-c.before) }
		catalog.readers.Add(1)
		w := httptest.NewRecorder()
		if status, err := cache.List(w, httptest.NewRequest("GET", "/v1/campaigns", nil)); status != http.StatusOK || err != nil {
			t.Fatalf("%d, %v", status, err)
		}
		if got := w.Header()["Cache-Control"]; !slices.Equal(got, c.keep) {
			t.Errorf("%s before the begin: %s, want %s", c.before, got, c.keep)
		}
	}
	if n := catalog.views.Load(); n != 1 {
		t.Errorf("the list was made %d times", n)
	}
}
