package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
)

// FuzzDecode: whatever a body is, it is refused with faults that can be shown, or is what a
// strict reading of it says.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"title":"T","units":2}`, `{"title":"T","Units":2}`, `{"title":"T","title":"U"}`, `{"title":"T"} {}`, `{"title":`, "{\"title\":\"\xff\"}", `{"title":"T","tags":["a",1]}`,
		`{"title":"T","units":1e2}`, `{"title":"T","units":99999999999999999999}`, `null`, `[]`, `{"title":null}`, `{"a/b~c":1}`, strings.Repeat(`[`, 100), `{"title":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	d := newOffers()
	f.Fuzz(func(t *testing.T, raw []byte) {
		var o offer
		value, err := d.Decode(raw, &o)
		if err == nil {
			var strict offer
			dec := json.NewDecoder(strings.NewReader(string(raw)))
			dec.DisallowUnknownFields()
			if again := dec.Decode(&strict); again != nil || strict.Title != o.Title || !utf8.Valid(raw) || o.Units != nil && *o.Units < 1 {
				t.Fatalf("%q is %+v; strictly %+v, %v", raw, o, strict, again)
			}
			if _, ok := value.(map[string]any); !ok {
				t.Fatalf("%q is %v", raw, value)
			}
			return
		}
		var e *dibs.Error
		if !errors.As(err, &e) || e.Reason != dibs.InvalidRequest {
			t.Fatalf("%q: %v", raw, err)
		}
		for _, fault := range e.Faults {
			if fault.Problem.EN == "" || !utf8.ValidString(fault.Field) || fault.Field != "" && fault.Field[0] != '/' {
				t.Errorf("%q: %+v", raw, fault)
			}
		}
	})
}

// FuzzHeaders: what clients write into the headers that are read by hand is a value within
// its bounds, or none.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{"", "k", `"k"`, `"a \" b"`, `"a\`, `"\x"`, "Bearer x", "bearer  x", "Basic x", `W/"1", *`, `zh-CN,en;q=0.5`, "en;q=x", strings.Repeat("a", 300), "\x00", "é", "https://shop.example"} {
		f.Add(seed)
	}
	var ids requestIDs
	ids.init()
	f.Fuzz(func(t *testing.T, text string) {
		h := http.Header{HeaderKey: {text}, "Authorization": {text}, HeaderRequestID: {text}, "If-None-Match": {text}}
		if key, err := IdempotencyKey(h); err == nil && (key == "" || len(key) > dibs.MaxKeyLen || !isPrintable(key)) {
			t.Errorf("%q is the key %q", text, key)
		}
		if token, ok := Bearer(h); ok && (token == "" || !strings.HasSuffix(text, token)) {
			t.Errorf("%q has the token %q", text, token)
		}
		if id := ids.of(h); !IsVisible(id, maxRequestID) {
			t.Errorf("%q is the request %q", text, id)
		}
		if HasTag(h, `"1"`) && !strings.Contains(text, `"1"`) && !strings.Contains(text, "*") {
			t.Errorf("%q has the tag", text)
		}
		if problem := CheckOrigin(text); problem == "" && text != "*" && !strings.HasPrefix(text, "http") {
			t.Errorf("%q is an origin", text)
		}
		if a, err := netip.ParseAddr(text); err == nil {
			if n := Network(a); n.IsValid() && !n.Contains(a.Unmap().WithZone("")) {
				t.Errorf("%s is in %s", a, n)
			}
		}
		// It must return, whatever the header is.
		prefersChinese(text)
	})
}

// FuzzAccept: a page is sent to those alone who name HTML, and whatever they write costs no more than reading it.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "text/html", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json, text/html;q=0.9", "text/html;q=0", "text/html;q=NaN", "text/html;q=1e999",
		"text/html;level=1;q=x", ";,;,", "text/html;q=0.1, application/problem+json;q=0.05", "TEXT/HTML",
	} {
		f.Add(seed, "")
		f.Add(seed, "application/json")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		both := PrefersHTML(http.Header{"Accept": {first, second}})
		if both && !strings.Contains(first, "text/html") && !strings.Contains(second, "text/html") {
			t.Errorf("%q and %q prefer HTML", first, second)
		}
		if both != PrefersHTML(http.Header{"Accept": {first + "," + second}}) {
			t.Errorf("%q and %q are another preference on one line", first, second)
		}
		if PrefersHTML(http.Header{"Accept": {first, "application/json;q=1"}}) && !strings.Contains(first, "q=") {
			t.Errorf("%q is preferred to JSON of the same weight", first)
		}
	})
}
