package web

import (
	"net/http"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// The headers that show limits, by the IETF's draft on them, as net/http writes
// their names.
const (
	headerLimit       = "Ratelimit"
	headerLimitPolicy = "Ratelimit-Policy"
)

// SetQuota shows how much of a limit is left. Both values are parts of one string,
// so that a claim allocates once for them.
func SetQuota(h http.Header, q *dibs.Quota) {
	if q.Name == "" {
		return
	}
	b := make([]byte, 0, 96)
	b = append(append(append(b, '"'), q.Name...), `";q=`...)
	b = strconv.AppendInt(b, q.Limit, 10)
	b = strconv.AppendInt(append(b, ";w="...), wholeSeconds(q.Window), 10)
	policy := len(b)
	b = append(append(append(b, '"'), q.Name...), `";r=`...)
	b = strconv.AppendInt(b, q.Remaining, 10)
	b = strconv.AppendInt(append(b, ";t="...), wholeSeconds(q.Reset), 10)
	text := string(b)
	both := [2]string{text[:policy], text[policy:]}
	h[headerLimitPolicy], h[headerLimit] = both[0:1:1], both[1:2:2]
}
