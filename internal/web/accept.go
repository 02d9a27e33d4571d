package web

import (
	"net/http"
	"strconv"
	"strings"
)

// PrefersHTML reports whether Accept names HTML, and gives no type of JSON more weight.
// Programs send */* or nothing and get JSON.
func PrefersHTML(h http.Header) bool {
	best := map[string]float64{}
	for _, line := range h["Accept"] {
		for part := range strings.SplitSeq(line, ",") {
			kind, rest, _ := strings.Cut(part, ";")
			weight := 1.0
			for p := range strings.SplitSeq(rest, ";") {
				if q, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok {
					// A weight that is no number counts as 0.
					weight, _ = strconv.ParseFloat(q, 64)
				}
			}
			best[strings.TrimSpace(kind)] = weight
		}
	}
	return best["text/html"] > max(best["application/json"], best["application/problem+json"])
}
