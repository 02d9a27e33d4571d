package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Page is a body that many callers read, with the headers that go with it. It does
// not change.
type Page struct {
	Body []byte
	// tag and length are values of headers.
	tag, length []string
}

// NewPage returns the page of a body.
func NewPage(body []byte) *Page {
	return &Page{Body: body, tag: []string{Tag(body)}, length: []string{strconv.Itoa(len(body))}}
}

// Tag returns the entity tag of a body.
func Tag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// HasTag reports whether If-None-Match names a tag, by weak comparison.
func HasTag(h http.Header, tag string) bool {
	for _, line := range h["If-None-Match"] {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// Send answers a request with the page, or with 304 when the caller has it already.
// contentType is the header's value. It returns the status.
func (p *Page) Send(a *Responder, w http.ResponseWriter, r *http.Request, contentType []string) int {
	h := w.Header()
	h["Etag"] = p.tag
	if len(r.Header["If-None-Match"]) > 0 && HasTag(r.Header, p.tag[0]) {
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified
	}
	h["Content-Type"], h["Content-Length"] = contentType, p.length
	a.Write(w, p.Body)
	return http.StatusOK
}

// Vary adds what an answer depends on to what other handlers said of it.
func Vary(h http.Header, on []string) {
	if before := h["Vary"]; len(before) > 0 {
		h["Vary"] = append(slices.Clip(before), on...)
		return
	}
	h["Vary"] = on
}

// MaxKeep is the longest time for which KeepFor lets others keep an answer.
const MaxKeep = 10 * time.Second

// keepFor are the values of Cache-Control by seconds.
var keepFor = func() (all [int(MaxKeep/time.Second) + 1][]string) {
	for s := range all {
		n := strconv.Itoa(s)
		all[s] = []string{"public, max-age=" + n + ", s-maxage=" + n + ", stale-while-revalidate=" + strconv.Itoa(5*s)}
	}
	return all
}()

// KeepFor returns the Cache-Control that lets browsers and proxies keep an answer
// for a time, in whole seconds from 1 to MaxKeep. Proxies may send it five times as
// long while one of them fetches the next.
func KeepFor(d time.Duration) []string {
	return keepFor[min(max(int(d/time.Second), 1), len(keepFor)-1)]
}

// A Pace allows paceTimes within paceWindow.
const (
	paceWindow = 100 * time.Millisecond
	paceTimes  = 8
)

// Pace bounds how often a page is made again, whatever the number of its readers
// and of the changes: 8 times within 100 ms. The zero value is ready, and safe for
// concurrent use; calls at the end of a window may be counted in either.
type Pace struct{ window, made atomic.Int64 }

// Allow reports whether the page may be made once more now, and counts it.
func (p *Pace) Allow() bool {
	now := time.Now().UnixMilli() / paceWindow.Milliseconds()
	if p.window.Swap(now) != now {
		p.made.Store(0)
	}
	return p.made.Add(1) <= paceTimes
}
