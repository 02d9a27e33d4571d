package web

import (
	"net/http"

	"golang.org/x/text/language"

	"github.com/dibs-dev/dibs/internal/bounded"
)

// The bounds of the cache of Accept-Language headers: how many headers, and how
// many bytes one may have. Longer ones are read each time.
const (
	cachedLanguages   = 1024
	maxCachedLanguage = 256
)

// languages decides between English and Chinese. Browsers send few different
// headers, so that a cache answers nearly all requests.
type languages struct {
	known bounded.Cache[string, bool]
}

func newLanguages() (*languages, error) {
	c, err := bounded.New[string, bool](cachedLanguages)
	return &languages{known: c}, err
}

// chinese reports whether a request prefers Chinese to English.
func (l *languages) chinese(h http.Header) bool {
	v := h[headerAcceptLanguage]
	if len(v) == 0 || v[0] == "" {
		return false
	}
	if len(v[0]) > maxCachedLanguage {
		return prefersChinese(v[0])
	}
	if zh, ok := l.known.GetIfPresent(v[0]); ok {
		return zh
	}
	zh := prefersChinese(v[0])
	l.known.Set(v[0], zh)
	return zh
}

// prefersChinese reads an Accept-Language header. A header that cannot be
// read, and one that names neither language, mean English.
func prefersChinese(header string) bool {
	// The tags come by falling weight, without those of weight 0.
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return false
	}
	for _, tag := range tags {
		base, _ := tag.Base()
		switch base.String() {
		case "zh":
			return true
		case "en", "mul":
			return false
		}
	}
	return false
}
