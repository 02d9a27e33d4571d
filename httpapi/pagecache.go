package httpapi

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// Catalog is what the page cache calls. Situation and CatalogVersion answer from
// memory; the others may read the ledger.
type Catalog interface {
	// Situation returns a campaign that users may know of, with its phase and what
	// remains; ErrNotFound for others.
	Situation(ctx context.Context, id string) (dibs.Situation, error)
	// CatalogVersion rises when a campaign or a product may have changed.
	CatalogVersion() int64
	Campaigns(ctx context.Context, public bool, page dibs.Page) (dibs.List[dibs.Campaign], error)
	CampaignView(ctx context.Context, c *dibs.Campaign, admin bool) (dibs.CampaignView, error)
}

const (
	// staleAfter is how long a list, or a campaign that is over, is served without a
	// change of the catalog before it is made again.
	staleAfter = time.Minute
	// maxCachedCampaigns bounds the campaigns in the cache.
	maxCachedCampaigns = 4096
)

// pageCache keeps the public views of campaigns, their pages for people and the
// first page of the list, as they are sent. Users read them before and during a
// sale, so that neither the number of readers nor that of claims makes the ledger
// work: it is read when a campaign or its product has changed.
//
// A page does not change; a newer one replaces it. When the stock alone has changed,
// a page is made again a few times in a tenth of a second at most, and readers get
// the page before meanwhile. When the definition or the phase has changed, they wait
// for the new page.
type pageCache struct {
	catalog Catalog
	respond *web.Responder
	now     func() time.Time

	// entries are by campaign id: string -> *cacheEntry. count is how many, or a few more.
	entries sync.Map
	count   atomic.Int64

	list   atomic.Pointer[listPage]
	flight web.Flight // held while the list is made
	pace   web.Pace
}

// cacheEntry is one campaign in the cache.
type cacheEntry struct {
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
	keep      time.Duration
}

// serveCampaign answers with the public view of a campaign. Callers with credentials
// may see more, and are left to the route.
func (p *pageCache) serveCampaign(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, given := r.Header["Authorization"]; given {
		return 0, nil
	}
	page, err := p.campaign(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, err
	}
	return p.send(w, r, page.json, keepFor(p.now(), page.starts, page.phase)), nil
}

// send answers with a page of the API that others may keep for a while.
func (p *pageCache) send(w http.ResponseWriter, r *http.Request, page *web.Page, keep time.Duration) int {
	p.respond.Begin(w, r)
	h := w.Header()
	web.Vary(h, varyAuthorization)
	h["Cache-Control"] = web.KeepFor(keep)
	return page.Send(p.respond, w, r, web.TypeJSON)
}

// campaign returns a campaign's page; ErrNotFound for drafts too.
func (p *pageCache) campaign(ctx context.Context, id string) (page *campaignPage, err error) {
	e, known := p.entry(id)
	if page := e.current.Load(); page != nil && p.isOver(page) {
		return page, nil
	}
	now, err := p.catalog.Situation(ctx, id)
	if err != nil {
		return nil, err
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
	if page, err = p.make(ctx, e, &now); err != nil {
		return nil, err
	}
	e.current.Store(page)
	if !known {
		p.keep(id, e)
	}
	return page, nil
}

// isOver reports whether a page is of a campaign that is over, and needs no look at
// its situation: nothing has changed since it was made.
func (p *pageCache) isOver(page *campaignPage) bool {
	return page.phase == dibs.PhaseEnded && page.catalog == p.catalog.CatalogVersion() && time.Since(page.made) < staleAfter
}

// entry returns a campaign's entry, a new one when the cache has none.
func (p *pageCache) entry(id string) (e *cacheEntry, known bool) {
	if v, ok := p.entries.Load(id); ok {
		return v.(*cacheEntry), true
	}
	return &cacheEntry{}, false
}

// keep puts an entry into the cache. A full cache is emptied first: it is filled
// again by what is read.
func (p *pageCache) keep(id string, e *cacheEntry) {
	if p.count.Add(1) > maxCachedCampaigns {
		p.entries.Clear()
		p.count.Store(1)
	}
	p.entries.LoadOrStore(id, e)
}

// make makes the page of a campaign; the caller holds the entry's flight.
func (p *pageCache) make(ctx context.Context, e *cacheEntry, now *dibs.Situation) (*campaignPage, error) {
	c := now.Campaign
	page := &campaignPage{
		mark: now.Mark, phase: now.Phase, remaining: now.Remaining, catalog: p.catalog.CatalogVersion(), made: time.Now(), starts: c.StartsAt,
	}
	v, err := p.view(ctx, e, now)
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
	if raw, err = renderPage(&v); err != nil {
		return nil, err
	}
	page.html = web.NewPage(raw)
	return page, nil
}

// view returns the public view of a campaign. The ledger has the numbers of one that
// is over, and the product; the product is read once for each version of the
// campaign.
func (p *pageCache) view(ctx context.Context, e *cacheEntry, now *dibs.Situation) (v dibs.CampaignView, err error) {
	c := now.Campaign
	if now.Phase == dibs.PhaseEnded || c.ProductID != "" && e.version != c.Version {
		if v, err = p.catalog.CampaignView(ctx, c, false); err != nil || now.Phase == dibs.PhaseEnded {
			return v, err
		}
	}
	if e.version != c.Version {
		e.product, e.version = productOf(v.Product), c.Version
	}
	return c.View(now.Remaining, e.product, false), nil
}

// productOf is what a public view shows of a product, as a product; nil for none.
func productOf(v *dibs.ProductView) *dibs.Product {
	if v == nil {
		return nil
	}
	p := &dibs.Product{
		ID: v.ID, Name: v.Name, Thumbnail: v.Thumbnail, Price: v.Price, Description: v.Description,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
	}
	if v.PayWithin != nil {
		p.PayWithin = time.Duration(*v.PayWithin)
	}
	return p
}
