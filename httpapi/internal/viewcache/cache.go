package viewcache

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
)

// Catalog is what the cache calls. CatalogVersion answers from memory, and so does Get
// for campaigns that are live; the others may read the ledger.
type Catalog interface {
	// Get returns a campaign that users may know of, with its phase and what
	// remains; ErrNotFound for others.
	Get(ctx context.Context, id string) (dibs.Snapshot, error)
	// CatalogVersion rises when a campaign may have changed.
	CatalogVersion() int64
	List(ctx context.Context, public bool, product string, page dibs.Page) (dibs.List[dibs.Campaign], error)
	CampaignView(ctx context.Context, c *dibs.Campaign, admin bool) (api.CampaignView, error)
}

const (
	// staleAfter is how long a list, or a campaign that is over, is served without a
	// change of the catalog before it is made again.
	staleAfter = time.Minute
	// maxCachedCampaigns bounds the campaigns in the cache.
	maxCachedCampaigns = 4096
)

// Cache keeps pages. Its methods are called concurrently; use New.
//
// A page does not change; a newer one replaces it. When the stock alone has changed,
// a page is made again a few times in a tenth of a second at most, and readers get
// the page before meanwhile. When the definition or the phase has changed, they wait
// for the new page.
type Cache struct {
	catalog Catalog
	site    Site
	// policy is the site's, as the value of a header.
	policy  []string
	respond *web.Responder
	// unknown is asked before the catalog is, where there is no page yet.
	unknown func(http.ResponseWriter, *http.Request) error
	now     func() time.Time

	// entries are by campaign id: string -> *entry. count is how many, or a few more.
	entries sync.Map
	count   atomic.Int64

	list   atomic.Pointer[listPage]
	flight web.Flight // held while the list is made
	pace   web.Pace   // of the list
}

// New returns a cache of a catalog, whose answers respond writes and whose pages site
// makes. unknown refuses readers who ask too often for campaigns of which there is no page
// yet: each id that somebody makes up may ask the ledger. now is the clock of the answers'
// Cache-Control.
func New(catalog Catalog, site Site, respond *web.Responder, unknown func(http.ResponseWriter, *http.Request) error, now func() time.Time) *Cache {
	return &Cache{catalog: catalog, site: site, policy: []string{site.Policy()}, respond: respond, unknown: unknown, now: now}
}

// entry is one campaign in the cache.
type entry struct {
	current atomic.Pointer[campaignPage]
	pace    web.Pace
	// flight is held while the page is made, and guards product and version.
	flight web.Flight
	// product is the campaign's in its version.
	product *dibs.Product
	version int64
}

// campaignPage is a campaign as it is sent.
type campaignPage struct {
	json *web.Page
	// html is the page for people. It has nothing that the stock changes.
	html *web.Page
	// The rest is what it was made from.
	mark      dibs.Mark
	phase     dibs.Phase
	remaining int64
	catalog   int64
	made      time.Time
	starts    time.Time
}

// listPage is the first page of the list of campaigns.
type listPage struct {
	json   *web.Page
	ids    []string
	cursor string
	// campaigns are the pages that it was made from.
	campaigns []*campaignPage
	catalog   int64
	read      time.Time
}

// Campaign answers with the public view of a campaign. Callers with credentials
// may see more, and are left to the route.
func (c *Cache) Campaign(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, given := r.Header["Authorization"]; given {
		return 0, nil
	}
	page, err := c.asked(w, r)
	if err != nil {
		return 0, err
	}
	return c.send(w, r, page.json, KeepFor(c.now(), page.starts, page.phase)), nil
}

// send answers with a page of the API that others may keep for a while.
func (c *Cache) send(w http.ResponseWriter, r *http.Request, page *web.Page, keep time.Duration) int {
	c.respond.Begin(w, r)
	h := w.Header()
	web.Vary(h, varyAuthorization)
	h["Cache-Control"] = web.KeepFor(keep)
	web.SetJSON(h)
	return page.Send(c.respond, w, r, web.TypeJSON)
}

// Stranger counts a request for a campaign that has no page here, which may ask the ledger, as a call of its address.
func (c *Cache) Stranger(w http.ResponseWriter, r *http.Request) error {
	if c.find(r.PathValue("id")) != nil {
		return nil
	}
	return c.unknown(w, r)
}

// asked returns the page of the campaign that a request names.
func (c *Cache) asked(w http.ResponseWriter, r *http.Request) (*campaignPage, error) {
	if err := c.Stranger(w, r); err != nil {
		return nil, err
	}
	return c.page(r.Context(), r.PathValue("id"))
}

// page returns a campaign's page; ErrNotFound for drafts too.
func (c *Cache) page(ctx context.Context, id string) (page *campaignPage, err error) {
	e := c.find(id)
	if e != nil {
		if page := e.current.Load(); page != nil && c.isOver(page) {
			return page, nil
		}
	}
	now, err := c.catalog.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if e == nil {
		// Only campaigns that there are come into the cache, whatever ids are asked for.
		e = c.add(id)
	}
	page = e.current.Load()
	if page != nil && page.mark == now.Mark && page.remaining == now.Remaining {
		return page, nil
	}
	stockOnly := page != nil && page.phase == now.Phase && page.mark.Version == now.Mark.Version
	if stockOnly && !e.pace.Allow() {
		return page, nil
	}
	if !e.flight.TryBegin() {
		if stockOnly {
			return page, nil
		}
		if err := e.flight.Begin(time.Now()); err != nil {
			return nil, err
		}
	}
	defer func() { e.flight.End(err) }()
	if page := e.current.Load(); page != nil && page.mark.Compare(now.Mark) >= 0 && page.remaining == now.Remaining {
		// Another reader made it while this one waited.
		return page, nil
	}
	if page, err = c.build(ctx, e, &now); err != nil {
		return nil, err
	}
	e.current.Store(page)
	return page, nil
}

// isOver reports whether a page is of a campaign that is over, and needs no look at
// its snapshot: nothing has changed since it was made.
func (c *Cache) isOver(page *campaignPage) bool {
	return page.phase == dibs.PhaseEnded && page.catalog == c.catalog.CatalogVersion() && time.Since(page.made) < staleAfter
}

// find returns a campaign's entry, nil when the cache has none.
func (c *Cache) find(id string) *entry {
	if v, ok := c.entries.Load(id); ok {
		return v.(*entry)
	}
	return nil
}

// add returns the entry of a campaign, and puts it into the cache unless another
// reader has done so. A full cache is emptied first: it is filled again by what is
// read.
func (c *Cache) add(id string) *entry {
	if c.count.Add(1) > maxCachedCampaigns {
		c.entries.Clear()
		c.count.Store(1)
	}
	v, _ := c.entries.LoadOrStore(id, &entry{})
	return v.(*entry)
}

// build makes the page of a campaign; the caller holds the entry's flight.
func (c *Cache) build(ctx context.Context, e *entry, now *dibs.Snapshot) (*campaignPage, error) {
	page := &campaignPage{
		mark: now.Mark, phase: now.Phase, remaining: now.Remaining, catalog: c.catalog.CatalogVersion(), made: time.Now(), starts: now.Campaign.StartsAt,
	}
	v, err := c.view(ctx, e, now)
	if err != nil {
		return nil, err
	}
	raw, err := web.EncodeJSON(v)
	if err != nil {
		return nil, err
	}
	page.json = web.NewPage(raw)
	if old := e.current.Load(); old != nil && old.mark.Version == page.mark.Version {
		page.html = old.html
		return page, nil
	}
	if raw, err = c.site.CampaignPage(v); err != nil {
		return nil, err
	}
	page.html = web.NewPage(raw)
	return page, nil
}

// view returns the public view of a campaign. The ledger has the numbers of one that
// is over, and the product; the product is read once for each version of the
// campaign.
func (c *Cache) view(ctx context.Context, e *entry, now *dibs.Snapshot) (v api.CampaignView, err error) {
	campaign := now.Campaign
	if now.Phase == dibs.PhaseEnded || campaign.ProductID != "" && e.version != campaign.Version {
		if v, err = c.catalog.CampaignView(ctx, campaign, false); err != nil || now.Phase == dibs.PhaseEnded {
			return v, err
		}
	}
	if e.version != campaign.Version {
		e.product, e.version = productOf(v.Product), campaign.Version
	}
	return api.CampaignViewOf(campaign, now.Remaining, e.product, false), nil
}

var varyAuthorization = []string{"Authorization"}

// KeepFor is how long browsers and proxies may keep the view of a campaign that
// starts at a time: a second while it runs, longer before and after.
func KeepFor(now, starts time.Time, phase dibs.Phase) time.Duration {
	switch phase {
	case dibs.PhaseUpcoming:
		return max(time.Second, min(web.MaxKeep, starts.Sub(now)))
	case dibs.PhaseEnded:
		return web.MaxKeep
	}
	return time.Second
}

// productOf is what a public view shows of a product, as a product; nil for none.
func productOf(v *api.ProductView) *dibs.Product {
	if v == nil {
		return nil
	}
	p := &dibs.Product{
		ID: v.ID, Name: v.Name, Thumbnail: v.Thumbnail, Price: v.Price, Description: v.Description, Status: v.Status,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
	}
	if v.PayWithin != nil {
		p.PayWithin = time.Duration(*v.PayWithin)
	}
	return p
}
