package httpapi

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"sync/atomic"
)

// The headers, as net/http writes them, so that the maps can be indexed.
const (
	headerRequestID = "X-Request-Id"
	headerKey       = "Idempotency-Key"
	headerReplayed  = "Idempotent-Replayed"
)

const maxRequestID = 128

// requestIDs makes request ids: a random word of this process, and a count.
// It asks nobody and takes no lock.
type requestIDs struct {
	prefix string
	n      atomic.Uint64
}

func (g *requestIDs) init() { g.prefix = rand.Text()[:13] + "-" }

// of returns the caller's own request id when it is fit to be repeated, else
// a new one.
func (g *requestIDs) of(h http.Header) string {
	if v := h[headerRequestID]; len(v) == 1 && isVisible(v[0], maxRequestID) {
		return v[0]
	}
	b := make([]byte, 0, 32)
	b = append(b, g.prefix...)
	b = strconv.AppendUint(b, g.n.Add(1), 36)
	return string(b)
}

// isVisible reports whether s is 1 to most visible ASCII characters.
func isVisible(s string, most int) bool {
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
