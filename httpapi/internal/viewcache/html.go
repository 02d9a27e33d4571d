package viewcache

import (
	"net/http"
	"strconv"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/web"
)

// Site makes the pages for people.
type Site interface {
	// CampaignPage is the page of a campaign. Nothing on it changes with the claims.
	CampaignPage(v api.CampaignView) ([]byte, error)
	// Policy is the Content-Security-Policy of all pages.
	Policy() string
}

// forGood lets others keep an answer for a year.
var forGood = []string{"public, max-age=31536000, s-maxage=31536000, immutable"}

// HTML answers with a campaign's page for people.
func (c *Cache) HTML(w http.ResponseWriter, r *http.Request) (int, error) {
	page, err := c.asked(w, r)
	if err != nil {
		return 0, err
	}
	c.respond.Begin(w, r)
	h := w.Header()
	h["Content-Security-Policy"] = c.policy
	current := strconv.FormatInt(page.mark.Version, 10)
	switch r.URL.Query().Get("v") {
	case "":
		// The page has the definition only, but an edit should be seen soon.
		h["Cache-Control"] = web.KeepFor(web.MaxKeep)
	case current:
		h["Cache-Control"] = forGood
	default:
		h["Cache-Control"] = []string{"public, max-age=1, s-maxage=1"}
		h["Location"] = []string{"/c/" + r.PathValue("id") + "?v=" + current}
		w.WriteHeader(http.StatusFound)
		return http.StatusFound, nil
	}
	return page.html.Send(c.respond, w, r, web.TypeHTML), nil
}
