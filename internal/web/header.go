package web

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

	noSniff   = []string{"nosniff"}
	askBearer = []string{"Bearer"}
)

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
