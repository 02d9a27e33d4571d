package web

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// The names of headers as net/http writes them, so that the maps can be indexed
// without a conversion.
const (
	// HeaderRequestID names the request in answers and logs.
	HeaderRequestID = "X-Request-Id"
	// HeaderKey is the client's name of a request that it may repeat.
	HeaderKey = "Idempotency-Key"
	// HeaderReplayed is `true` on the answer of an earlier request.
	HeaderReplayed = "Idempotent-Replayed"

	headerAcceptLanguage = "Accept-Language"
)

// Values of headers. All answers share them, so nothing may change them;
// net/http only reads them.
var (
	TypeJSON = []string{"application/json"}
	TypeHTML = []string{"text/html; charset=utf-8"}
	// TypeProblem is the type of problem documents.
	TypeProblem = []string{"application/problem+json"}
	NoStore     = []string{"no-store"}
	True        = []string{"true"}

	// asFile keeps browsers from showing an answer of the API as a page of its own, and names
	// what they would save: no text in an answer chooses that.
	asFile = []string{`attachment; filename="api.json"`}

	noSniff = []string{"nosniff"}
	// onlyTLS makes browsers use HTTPS for a year, once they have seen it work.
	onlyTLS   = []string{"max-age=31536000"}
	askBearer = []string{"Bearer"}
)

// headerDisposition says what a browser does with an answer that it is led to.
const headerDisposition = "Content-Disposition"

// SetJSON says that an answer of the API is JSON.
func SetJSON(h http.Header) { h["Content-Type"], h[headerDisposition] = TypeJSON, asFile }

// Single returns the value of a header that comes exactly once; else "".
func Single(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// IsVisible reports whether s is 1 to most visible ASCII characters.
func IsVisible(s string, most int) bool {
	if len(s) == 0 || len(s) > most {
		return false
	}
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Bearer returns the token of a request, "" when it sends none. It reports false
// for credentials that are not one bearer token.
func Bearer(h http.Header) (token string, ok bool) {
	v := h["Authorization"]
	if len(v) == 0 {
		return "", true
	}
	const scheme = "Bearer "
	if len(v) > 1 || len(v[0]) <= len(scheme) || !strings.EqualFold(v[0][:len(scheme)], scheme) {
		return "", false
	}
	return v[0][len(scheme):], true
}

// maxRequestID bounds the ids that callers choose, in bytes.
const maxRequestID = 128

// requestIDs makes request ids from a random word of this process and a count. It
// takes no lock and calls no other process.
type requestIDs struct {
	prefix string
	n      atomic.Uint64
}

func (g *requestIDs) init() { g.prefix = rand.Text()[:13] + "-" }

// of returns the caller's own request id when it can be repeated in headers and
// logs, else a new one.
func (g *requestIDs) of(h http.Header) string {
	if v := h[HeaderRequestID]; len(v) == 1 && IsVisible(v[0], maxRequestID) {
		return v[0]
	}
	b := make([]byte, 0, 32)
	b = append(b, g.prefix...)
	b = strconv.AppendUint(b, g.n.Add(1), 36)
	return string(b)
}
