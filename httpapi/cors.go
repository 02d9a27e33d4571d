package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rs/cors"
)

// corsAge is how long browsers remember what they may send, in seconds.
const corsAge = 600

// crossOrigin lets pages of these origins call the API from browsers. Cookies
// are no credentials here, so that none are asked for.
func crossOrigin(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: methods,
		AllowedHeaders: []string{"Authorization", "Content-Type", headerKey, headerRequestID, "If-None-Match", headerDevice, "Dibs-Ticket", "Dibs-Admission", "Last-Event-ID"},
		ExposedHeaders: []string{headerRequestID, headerReplayed, "Retry-After", "ETag", "Location", "RateLimit", "RateLimit-Policy"},
		MaxAge:         corsAge,
	}).Handler(next)
}

// CheckOrigin says what is wrong with an origin that may call the API; "" when
// nothing is. `*` means every page there is.
func CheckOrigin(origin string) string {
	if origin == "*" {
		return ""
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" ||
		strings.Contains(u.Host, "*") || origin != strings.ToLower(origin) {
		return "must be an origin such as https://shop.example, in small letters and without a path, or * for every page there is"
	}
	return ""
}
