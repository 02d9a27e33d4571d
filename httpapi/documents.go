package httpapi

import (
	"fmt"
	"net/http"

	"github.com/dibs-dev/dibs/httpapi/internal/apidocs"
	"github.com/dibs-dev/dibs/internal/web"
)

// pageHandlers document the page for people. The page cache answers all requests for
// one, with an error where there is no such campaign.
type pageHandlers struct {
	*routes
}

func (h *pageHandlers) register() {
	h.plain(operation{
		method: http.MethodGet, path: "/c/{id}", id: "campaign-page", tag: tagCatalog, access: open,
		summary: "A campaign's page, for people",
		description: "With a countdown, in English and Chinese, and nothing from other servers. `?v=` with the campaign's `version` is " +
			"an address that may be kept for good; any other version leads to the current one.",
	}, web.TypeHTML[0], h.unknown)
}

// serveDocument serves the document and its page for people. It must come after all
// other routes.
func (a *routes) serveDocument() error {
	document := operation{method: http.MethodGet, path: "/openapi.json", id: "openapi", tag: tagOps, access: open, summary: "This document"}
	docs := operation{method: http.MethodGet, path: "/docs", id: "docs", tag: tagOps, access: open, summary: "This document for people"}
	a.describePlain(&document, web.TypeJSON[0])
	a.describePlain(&docs, web.TypeHTML[0])
	doc, raw, err := a.JSON()
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	page, err := apidocs.Render(doc, a.examples)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	a.HandleFunc("GET /openapi.json", a.static(web.TypeJSON, raw))
	a.HandleFunc("GET /docs", a.static(web.TypeHTML, page))
	return nil
}

// docsPolicy lets the page use its own style sheet and nothing else.
const docsPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// static serves a body that does not change while the process runs.
func (a *routes) static(contentType []string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"] = contentType
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Cache-Control", "public, max-age=60")
		a.respond.Write(w, body)
	}
}
