package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// What changes with the stock alone is put together anew shelfMakes times in
	// shelfRest at most, whatever the number of readers and claims.
	shelfRest  = 100 * time.Millisecond
	shelfMakes = 8
	// shelfNet is how long a list, or a campaign that is over, is believed without
	// news of a change.
	shelfNet = time.Minute
	// maxShelved bounds the campaigns on the shelf.
	maxShelved = 4096
)

// quick answers what can be answered from the shelf and returns the status; 0
// leaves the request to the route, or to the error.
type quick func(w http.ResponseWriter, r *http.Request) (status int, refusal error)

// pace bounds how often something is made.
type pace struct{ window, made atomic.Int64 }

// may reports whether it may be made once more now.
func (p *pace) may() bool {
	now := time.Now().UnixMilli() / shelfRest.Milliseconds()
	if p.window.Swap(now) != now {
		p.made.Store(0)
	}
	return p.made.Add(1) <= shelfMakes
}

// shelf keeps what everybody reads before and during a sale, as it is sent. It
// asks the ledger for what has changed, and for nothing else.
type shelf struct {
	a     *api
	count atomic.Int64
	known sync.Map // string -> *book
	list  atomic.Pointer[listing]
	// making is held while the list is put together.
	making making
	pace   pace
}

// book is one campaign on the shelf.
type book struct {
	// making is held while the print is made.
	making  making
	pace    pace
	current atomic.Pointer[printed]
	// product belongs to version; guarded by making.
	product *dibs.Product
	version int64
}

// printed is a campaign as it is sent.
type printed struct {
	raw         []byte
	tag, length []string
	// page is the page for people, which belongs to the version.
	page                []byte
	pageTag, pageLength []string
	// What it was made from.
	mark      dibs.Mark
	phase     dibs.Phase
	remaining int64
	catalog   int64
	made      time.Time
	starts    time.Time
	ends      time.Time
}

// listing is the first page of the list of campaigns.
type listing struct {
	raw         []byte
	tag, length []string
	ids         []string
	cursor      string
	// prints are what it was put together from.
	prints  []*printed
	catalog int64
	read    time.Time
	keep    time.Duration
}

// registerShelf makes the shelf and the quick answers from it.
func (a *api) registerShelf() {
	a.shelf = &shelf{a: a}
	a.quick = map[string]quick{
		"GET /v1/campaigns/{id}": a.shelf.view,
		"GET /v1/campaigns":      a.shelf.catalog,
	}
	a.registerPage()
}

// quickly puts the quick answer of a pattern, if it has one, before its route.
func (rt *routes) quickly(pattern string, m *routeMetrics, route http.HandlerFunc) http.HandlerFunc {
	answer := rt.api.quick[pattern]
	if answer == nil {
		return route
	}
	refuse := rt.called(m, false, func(_ http.ResponseWriter, r *http.Request) {
		err, _ := r.Context().Value(refusalKey{}).(error)
		rt.api.fail(callOf(r.Context()), err)
	})
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		status, err := answer(w, r)
		switch {
		case status != 0:
			m.observe(status, start)
		case err != nil:
			refuse(w, r.WithContext(context.WithValue(r.Context(), refusalKey{}, err)))
		default:
			route(w, r)
		}
	}
}

type refusalKey struct{}

var varyAuthorization = []string{"Authorization"}

// vary adds what the answer depends on, beside what others have said of it.
func vary(h http.Header, on []string) {
	if before := h["Vary"]; len(before) > 0 {
		h["Vary"] = append(slices.Clip(before), on...)
		return
	}
	h["Vary"] = on
}

// cacheControls are the headers by the seconds that a view may be kept.
var cacheControls = func() (all [int(earlyCache/time.Second) + 1][]string) {
	for s := range all {
		n := strconv.Itoa(s)
		all[s] = []string{"public, max-age=" + n + ", s-maxage=" + n + ", stale-while-revalidate=" + strconv.Itoa(5*s)}
	}
	return all
}()

// cacheControl lets browsers and proxies keep a view, and proxies show it a
// while longer to those who come while one of them asks for the next.
func cacheControl(keep time.Duration) []string {
	return cacheControls[min(max(int(keep/time.Second), 1), len(cacheControls)-1)]
}

// keepUntil is how long a view may be kept by others.
func keepUntil(now, starts time.Time, phase dibs.Phase) time.Duration {
	switch phase {
	case dibs.PhaseUpcoming:
		return min(earlyCache, starts.Sub(now))
	case dibs.PhaseEnded:
		return earlyCache
	}
	return time.Second
}

// view answers everybody's view of a campaign. Callers with credentials see
// more, and are left to the route.
func (s *shelf) view(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, named := r.Header["Authorization"]; named {
		return 0, nil
	}
	p, err := s.print(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, err
	}
	s.a.openHeader(w, r)
	h := w.Header()
	h["Etag"] = p.tag
	vary(h, varyAuthorization)
	h["Cache-Control"] = cacheControl(keepUntil(s.a.cfg.Now(), p.starts, p.phase))
	return s.a.body200(w, r, typeJSON, p.tag, p.length, p.raw), nil
}

// openHeader sets what every answer has.
func (a *api) openHeader(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h[headerRequestID] = []string{a.ids.of(r.Header)}
	h["X-Content-Type-Options"] = noSniff
}

// body200 sends a body, or says that the caller has it.
func (a *api) body200(w http.ResponseWriter, r *http.Request, kind, tag, length []string, raw []byte) int {
	h := w.Header()
	if len(r.Header["If-None-Match"]) > 0 && hasTag(r.Header, tag[0]) {
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified
	}
	h["Content-Type"], h["Content-Length"] = kind, length
	a.write(w, raw)
	return http.StatusOK
}

// print returns a campaign as it is sent. ErrNotFound, for drafts too.
func (s *shelf) print(ctx context.Context, id string) (p *printed, err error) {
	b, known := s.find(id)
	if p := b.current.Load(); p != nil && s.over(p) {
		return p, nil
	}
	now, err := s.a.svc.Situation(ctx, id)
	if err != nil {
		return nil, err
	}
	p = b.current.Load()
	if p != nil && p.mark == now.Mark && p.remaining == now.Remaining {
		return p, nil
	}
	stockOnly := p != nil && p.phase == now.Phase && p.mark.Version == now.Mark.Version
	if stockOnly && !b.pace.may() {
		return p, nil
	}
	if !b.making.try() {
		if stockOnly {
			// Somebody makes it anew meanwhile.
			return p, nil
		}
		if err := b.making.wait(time.Now()); err != nil {
			return nil, err
		}
	}
	defer func() { b.making.end(err) }()
	if p := b.current.Load(); p != nil && p.mark.Compare(now.Mark) >= 0 && p.remaining == now.Remaining {
		return p, nil
	}
	if p, err = s.make(ctx, b, &now); err != nil {
		return nil, err
	}
	b.current.Store(p)
	if !known {
		s.keep(id, b)
	}
	return p, nil
}

// over reports whether a print is of a campaign that is over, and of which no
// change was heard.
func (s *shelf) over(p *printed) bool {
	return p.phase == dibs.PhaseEnded && p.catalog == s.a.svc.CatalogVersion() && time.Since(p.made) < shelfNet
}

// find returns a campaign's book, a new one when there is none.
func (s *shelf) find(id string) (b *book, known bool) {
	if v, ok := s.known.Load(id); ok {
		return v.(*book), true
	}
	return &book{}, false
}

// keep puts a book on the shelf. When that is full, it begins anew.
func (s *shelf) keep(id string, b *book) {
	if s.count.Add(1) > maxShelved {
		s.known.Clear()
		s.count.Store(1)
	}
	s.known.LoadOrStore(id, b)
}

// make puts a campaign together as everybody sees it.
func (s *shelf) make(ctx context.Context, b *book, now *dibs.Situation) (*printed, error) {
	c := now.Campaign
	p := &printed{
		mark: now.Mark, phase: now.Phase, remaining: now.Remaining, catalog: s.a.svc.CatalogVersion(), made: time.Now(),
		starts: c.StartsAt, ends: c.EndsAt,
	}
	var v dibs.CampaignView
	if now.Phase == dibs.PhaseEnded || c.ProductID != "" && b.version != c.Version {
		var err error
		if v, err = s.a.svc.CampaignView(ctx, c, false); err != nil {
			return nil, err
		}
	}
	if now.Phase != dibs.PhaseEnded {
		if b.version != c.Version {
			b.product, b.version = nil, c.Version
			if c.ProductID != "" {
				b.product = productOf(v.Product)
			}
		}
		v = c.View(now.Remaining, b.product, false)
	}
	var err error
	if p.raw, err = encodeJSON(v); err != nil {
		return nil, err
	}
	p.tag, p.length = tagOf(p.raw), lengthOf(p.raw)
	if old := b.current.Load(); old != nil && old.mark.Version == p.mark.Version {
		p.page, p.pageTag, p.pageLength = old.page, old.pageTag, old.pageLength
		return p, nil
	}
	if p.page, err = renderPage(&v); err != nil {
		return nil, err
	}
	p.pageTag, p.pageLength = tagOf(p.page), lengthOf(p.page)
	return p, nil
}

// productOf is what a public view shows of a product, as a product.
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

func tagOf(raw []byte) []string {
	sum := sha256.Sum256(raw)
	return []string{`"` + hex.EncodeToString(sum[:12]) + `"`}
}

func lengthOf(raw []byte) []string { return []string{strconv.Itoa(len(raw))} }

// catalog answers everybody's first page of the list.
func (s *shelf) catalog(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, named := r.Header["Authorization"]; named || r.URL.RawQuery != "" {
		return 0, nil
	}
	l, err := s.listed(r.Context())
	if err != nil {
		return 0, err
	}
	s.a.openHeader(w, r)
	h := w.Header()
	h["Etag"], h["Cache-Control"] = l.tag, cacheControl(l.keep)
	vary(h, varyAuthorization)
	return s.a.body200(w, r, typeJSON, l.tag, l.length, l.raw), nil
}

// listed returns the list. The ledger is asked when a campaign has changed; what
// remains is put in anew a few times a second.
func (s *shelf) listed(ctx context.Context) (l *listing, err error) {
	catalog := s.a.svc.CatalogVersion()
	l = s.list.Load()
	current := l != nil && l.catalog == catalog && time.Since(l.read) < shelfNet
	if current && (!s.changed(ctx, l) || !s.pace.may()) {
		return l, nil
	}
	if !s.making.try() {
		if current {
			return l, nil
		}
		if err := s.making.wait(time.Now()); err != nil {
			return nil, err
		}
	}
	defer func() { s.making.end(err) }()
	if l = s.list.Load(); l != nil && l.catalog >= catalog && !s.changed(ctx, l) && time.Since(l.read) < shelfNet {
		return l, nil
	}
	next := &listing{catalog: catalog, keep: earlyCache}
	if current && l != nil {
		next.ids, next.cursor, next.read = l.ids, l.cursor, l.read
	} else {
		all, err := s.a.svc.Campaigns(ctx, true, dibs.Page{Limit: dibs.DefaultPage})
		if err != nil {
			return nil, err
		}
		next.read, next.cursor = time.Now(), all.NextCursor
		for i := range all.Items {
			next.ids = append(next.ids, all.Items[i].ID)
		}
	}
	if err := s.bind(ctx, next); err != nil {
		return nil, err
	}
	s.list.Store(next)
	return next, nil
}

// changed reports whether a campaign of a list is another one than there.
func (s *shelf) changed(ctx context.Context, l *listing) bool {
	for i, id := range l.ids {
		if p, err := s.print(ctx, id); err != nil || p != l.prints[i] {
			return true
		}
	}
	return false
}

// bind puts the list together from its campaigns.
func (s *shelf) bind(ctx context.Context, l *listing) error {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	now := s.a.cfg.Now()
	for i, id := range l.ids {
		p, err := s.print(ctx, id)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(p.raw)
		l.prints = append(l.prints, p)
		l.keep = min(l.keep, keepUntil(now, p.starts, p.phase))
	}
	b.WriteString(`],"next_cursor":`)
	l.raw = append(appendString(b.Bytes(), l.cursor), '}')
	l.tag, l.length = tagOf(l.raw), lengthOf(l.raw)
	return nil
}
