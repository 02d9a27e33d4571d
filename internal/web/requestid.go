package web

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"sync/atomic"
)

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
