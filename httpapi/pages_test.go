package httpapi_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// asBrowser is what browsers send when a person opens an address.
const asBrowser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// People get pages and programs JSON at the same addresses, whatever goes wrong.
func TestProblemsForPeople(t *testing.T) {
	s := newStack(t, nil)
	for _, c := range []struct {
		path, accept string
		status       int
		html         bool
	}{
		{"/nowhere", asBrowser, 404, true},
		{"/nowhere", "Accept: application/json", 404, false},
		{"/nowhere", "Accept: */*", 404, false},
		{"/nowhere", "Accept: application/json, text/html;q=0.9", 404, false},
		{"/nowhere", "Accept: text/html;q=0", 404, false},
		{"/c/none", asBrowser, 404, true},
		{"/v1/nowhere", asBrowser, 404, true},
		{"/v1/campaigns/none", asBrowser, 404, false},
		{"/v1/me/claims", asBrowser, 401, false},
		{"/assets/0/none.js", asBrowser, 404, true},
	} {
		a := s.ask("GET", c.path, "", c.accept, "Accept-Language: zh")
		html := strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
		if a.status != c.status || html != c.html {
			t.Errorf("%s with %s: %d %s", c.path, c.accept, a.status, a.header.Get("Content-Type"))
			continue
		}
		if html && (!strings.Contains(a.body, "没有找到该页面") || !strings.Contains(a.header.Get("Content-Security-Policy"), "script-src 'self'") ||
			!strings.Contains(strings.Join(a.header.Values("Vary"), ","), "Accept")) {
			t.Errorf("%s: %v\n%s", c.path, a.header, a.body)
		}
	}
	if a := s.ask("POST", "/nowhere", "", asBrowser); a.json["reason"] != "not_found" {
		t.Errorf("a POST: %s", a.body)
	}
}

// The start page names assets that are there and may be kept for good.
func TestHomeLoadsItsAssets(t *testing.T) {
	s := newStack(t, nil)
	for _, page := range []string{"/", "/c/x"} {
		if page == "/c/x" {
			s.sale("x", 1, 1)
		}
		a := s.ask("GET", page, "", asBrowser)
		if a.status != http.StatusOK || a.header.Get("ETag") == "" {
			t.Fatalf("%s: %d %v", page, a.status, a.header)
		}
		named := regexp.MustCompile(`"(/assets/[^"]+)"`).FindAllStringSubmatch(a.body, -1)
		if len(named) < 2 {
			t.Errorf("%s names %d assets:\n%s", page, len(named), a.body)
		}
		for _, m := range named {
			if b := s.ask("GET", m[1], ""); b.status != http.StatusOK || !strings.Contains(b.header.Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d %v", m[1], b.status, b.header)
			}
		}
	}
}
