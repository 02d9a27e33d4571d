package viewcache

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// List answers with the first page of the list of campaigns. Other pages, and
// callers with credentials, are left to the route.
func (c *Cache) List(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, given := r.Header["Authorization"]; given || r.URL.RawQuery != "" {
		return 0, nil
	}
	l, err := c.first(r.Context())
	if err != nil {
		return 0, err
	}
	return c.send(w, r, l.json, l.keep(c.now())), nil
}

// keep is how long others may keep the list: as long as each of its campaigns. The list may have been made long before.
func (l *listPage) keep(now time.Time) time.Duration {
	keep := web.MaxKeep
	for _, page := range l.campaigns {
		keep = min(keep, KeepFor(now, page.starts, page.phase))
	}
	return keep
}

// first returns the list. The ledger is read when a campaign has changed; a change
// of stock alone is put in a few times in a tenth of a second at most.
func (c *Cache) first(ctx context.Context) (l *listPage, err error) {
	catalog := c.catalog.CatalogVersion()
	l = c.list.Load()
	current := l != nil && l.catalog == catalog && time.Since(l.read) < staleAfter
	if current && (!c.hasChanged(ctx, l) || !c.pace.Allow()) {
		return l, nil
	}
	if !c.flight.TryBegin() {
		if current {
			return l, nil
		}
		if err := c.flight.Begin(time.Now()); err != nil {
			return nil, err
		}
	}
	defer func() { c.flight.End(err) }()
	if l = c.list.Load(); l != nil && l.catalog >= catalog && !c.hasChanged(ctx, l) && time.Since(l.read) < staleAfter {
		// Another reader made it while this one waited.
		return l, nil
	}
	next := &listPage{catalog: catalog}
	if current && l != nil {
		next.ids, next.cursor, next.read = l.ids, l.cursor, l.read
	} else {
		all, err := c.catalog.List(ctx, true, "", dibs.Page{Limit: dibs.DefaultPage})
		if err != nil {
			return nil, err
		}
		next.read, next.cursor = time.Now(), all.NextCursor
		for i := range all.Items {
			next.ids = append(next.ids, all.Items[i].ID)
		}
	}
	if err := c.fill(ctx, next); err != nil {
		return nil, err
	}
	c.list.Store(next)
	return next, nil
}

// hasChanged reports whether a campaign of a list has another page than there.
func (c *Cache) hasChanged(ctx context.Context, l *listPage) bool {
	for i, id := range l.ids {
		if page, err := c.page(ctx, id); err != nil || page != l.campaigns[i] {
			return true
		}
	}
	return false
}

// fill makes the list from the pages of its campaigns.
func (c *Cache) fill(ctx context.Context, l *listPage) error {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i, id := range l.ids {
		page, err := c.page(ctx, id)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(page.json.Body)
		l.campaigns = append(l.campaigns, page)
	}
	b.WriteString(`],"next_cursor":`)
	l.json = web.NewPage(append(web.AppendString(b.Bytes(), l.cursor), '}'))
	return nil
}
