package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
)

//go:embed page.html
var pageText string

// The script is the button's, then the page's, which draws it.
//
//go:embed press.js
var pressScript string

//go:embed page.js
var viewScript string

var pageScript = pressScript + viewScript

//go:embed page.css
var pageStyle string

// pageTemplate is a campaign's page. Script and style are the same for all, so
// that the policy can name them.
var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"script": func() template.JS { return template.JS(pageScript) },
	"style":  func() template.CSS { return template.CSS(pageStyle) },
	"when":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"money":  showMoney,
	// A share of a red packet is in the currency of the whole.
	"decimals": func(v *dibs.CampaignView) int {
		if v.RedPacket != nil {
			return v.RedPacket.Total.Decimals()
		}
		return 0
	},
}).Parse(pageText))

// pagePolicy lets the page run its own script, use its own style, and ask this
// server; nothing else, and from nowhere else.
var pagePolicy = []string{
	"default-src 'none'; script-src '" + hashOf(pageScript) + "'; style-src '" + hashOf(pageStyle) +
		"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// showMoney shows an amount as people write it.
func showMoney(m *dibs.Money) string { return m.Currency + " " + m.Digits() }

// renderPage is a campaign's page. What changes with each claim is not in it.
func renderPage(v *dibs.CampaignView) ([]byte, error) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, v)
	return b.Bytes(), err
}

const pagePattern = "GET /c/{id}"

// registerPage adds the page.
func (a *api) registerPage() {
	a.quick[pagePattern] = a.shelf.servePage
	a.plain(operation{
		method: http.MethodGet, path: "/c/{id}", id: "campaign-page", tag: tagCatalog, access: open,
		summary: "A campaign's page, for people",
		description: "With a countdown, in English and Chinese, and nothing from elsewhere. `?v=` with the campaign's `version` is " +
			"an address that may be kept for good; any other version leads to the one that is.",
	}, "text/html; charset=utf-8", nil)
	a.routes.HandleFunc(pagePattern, a.routes.unknown)
}

var (
	typeHTML = []string{"text/html; charset=utf-8"}
	forGood  = []string{"public, max-age=31536000, s-maxage=31536000, immutable"}
	briefly  = []string{"public, max-age=1, s-maxage=1"}
)

// servePage answers with a campaign's page.
func (s *shelf) servePage(w http.ResponseWriter, r *http.Request) (int, error) {
	p, err := s.print(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, err
	}
	s.a.openHeader(w, r)
	h := w.Header()
	h["Content-Security-Policy"] = pagePolicy
	switch version := r.URL.Query().Get("v"); version {
	case "":
		// Only the definition is in it, but an edit should be seen soon.
		h["Cache-Control"] = cacheControl(earlyCache)
	case strconv.FormatInt(p.mark.Version, 10):
		h["Cache-Control"] = forGood
	default:
		h["Cache-Control"] = briefly
		h["Location"] = []string{"/c/" + r.PathValue("id") + "?v=" + strconv.FormatInt(p.mark.Version, 10)}
		w.WriteHeader(http.StatusFound)
		return http.StatusFound, nil
	}
	h["Etag"] = p.pageTag
	return s.a.body200(w, r, typeHTML, p.pageTag, p.pageLength, p.page), nil
}
