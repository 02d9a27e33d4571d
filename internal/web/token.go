package web

import (
	"net/http"
	"strings"
)

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
