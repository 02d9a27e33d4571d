package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestProfiles: the profiles are beside what was there before, without the command
// line, which may hold secrets.
func TestProfiles(t *testing.T) {
	h := withProfiles(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for path, want := range map[string]int{
		"/v1/products": http.StatusTeapot, "/debug/pprof/": http.StatusOK, "/debug/pprof/symbol": http.StatusOK, "/debug/pprof/cmdline": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
