package pages

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
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
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
	"decimals": func(v *api.CampaignView) int {
		if v.RedPacket != nil {
			return v.RedPacket.Total.Decimals()
		}
		return 0
	},
}).Parse(pageText))

// pagePolicy lets the page run its own script, use its own style, and ask this
// server; nothing else, and nothing of other servers.
var pagePolicy = []string{
	"default-src 'none'; script-src '" + hashOf(pageScript) + "'; style-src '" + hashOf(pageStyle) +
		"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// showMoney returns an amount as people write it.
func showMoney(m *dibs.Money) string { return m.Currency + " " + m.Digits() }

// renderPage renders a campaign's page. Nothing on it changes with the claims.
func renderPage(v *api.CampaignView) ([]byte, error) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, v)
	return b.Bytes(), err
}

// forGood lets others keep an answer for a year.
var forGood = []string{"public, max-age=31536000, s-maxage=31536000, immutable"}

// HTML answers with a campaign's page for people.
func (c *Cache) HTML(w http.ResponseWriter, r *http.Request) (int, error) {
	page, err := c.page(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, err
	}
	c.respond.Begin(w, r)
	h := w.Header()
	h["Content-Security-Policy"] = pagePolicy
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
