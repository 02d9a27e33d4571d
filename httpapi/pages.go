package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs/internal/web"
	site "github.com/dibs-dev/dibs/web"
)

const assetPattern = "GET " + site.AssetPrefix + "{version}/{name...}"

// pageHandlers serve the pages for people, and what they load. The page cache answers
// all requests for a campaign's page, with an error where there is no such campaign.
type pageHandlers struct {
	*routes
	site *site.Site
}

func (h *pageHandlers) register() {
	h.plain(operation{
		method: http.MethodGet, path: "/c/{id}", id: "campaign-page", tag: tagPages, access: open,
		summary: "A campaign's page: press, or red-packet rain",
		description: "In English and Chinese, with a countdown by the server's clock, and nothing from other servers. `?v=` with the campaign's " +
			"`version` is an address that may be kept for good; any other version leads to the current one.",
	}, web.TypeHTML[0], func(_ *call, w http.ResponseWriter, r *http.Request) error {
		h.unknown(w, r)
		return nil
	})
	home := operation{
		method: http.MethodGet, path: "/", id: "home-page", tag: tagPages, access: open,
		summary: "The storefront where there is one, else a page that leads on",
	}
	h.describePlain(&home, web.TypeHTML[0])
	h.HandleFunc("GET /{$}", h.page(h.site.Home, web.KeepFor(web.MaxKeep)))
	h.HandleFunc(assetPattern, func(w http.ResponseWriter, r *http.Request) {
		if !h.site.Asset(w, r) {
			h.fail(callOf(r.Context()), noRoute)
		}
	})
	console := operation{
		method: http.MethodGet, path: "/console/", id: "console-page", tag: tagPages, access: open, summary: "The console, at each of its addresses",
	}
	h.describePlain(&console, web.TypeHTML[0])
	h.handleInside("GET /console/{path...}", h.page(h.site.Console, []string{"no-cache"}))
}

// page serves a page that is made anew for each request.
// The page is small and the same for everyone, so it is made anew and not remembered.
func (h *pageHandlers) page(render func() ([]byte, error), keep []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := render()
		if err != nil {
			h.fail(callOf(r.Context()), err)
			return
		}
		w.Header()["Cache-Control"] = keep
		h.site.Send(w, r, body)
	}
}

// forPeople reports whether a problem is to be a page: the request prefers HTML, and its
// address is none, or one of the pages' own. Addresses below /v1 are for programs.
func forPeople(r *http.Request, p *web.Problem) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	known := strings.HasPrefix(r.URL.Path, "/v1/") && p.Detail != noRoute.Detail
	return !known && web.PrefersHTML(r.Header)
}

// problemPages returns what makes the page of a problem, in both languages; nil for requests
// that are answered with JSON.
func problemPages(s *site.Site, respond *web.Responder) func(http.ResponseWriter, *http.Request, *web.Problem) []byte {
	return func(w http.ResponseWriter, r *http.Request, p *web.Problem) []byte {
		if !forPeople(r, p) {
			return nil
		}
		body, err := s.Problem(p.StatusCode(), respond.Chinese(r), p.Reason.Info().Title, p.Text())
		if err != nil {
			// JSON says the same.
			return nil
		}
		h := w.Header()
		// A page is shown, not saved.
		delete(h, "Content-Disposition")
		h["Content-Type"], h["Content-Security-Policy"] = web.TypeHTML, []string{s.Policy()}
		h["Vary"] = slices.Concat(h["Vary"], []string{"Accept", "Accept-Language"})
		return body
	}
}
