package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rs/cors"
)

// corsAge is how long browsers may cache a preflight's answer, in seconds.
const corsAge = 600

// CrossOrigin is what pages of other origins may do with a server.
type CrossOrigin struct {
	// Origins may call the server, as CheckOrigin accepts them; none for no other
	// origin.
	Origins []string
	// Methods and Headers are what the pages may send, Exposed the headers of
	// answers that they may read.
	Methods, Headers, Exposed []string
}

// Handler lets pages of the origins call next from browsers. Credentials that
// browsers add by themselves, such as cookies, are not allowed.
func (c *CrossOrigin) Handler(next http.Handler) http.Handler {
	if len(c.Origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: c.Origins, AllowedMethods: c.Methods, AllowedHeaders: c.Headers, ExposedHeaders: c.Exposed, MaxAge: corsAge,
	}).Handler(next)
}

// CheckOrigin returns what is wrong with an origin that may call a server, or "".
// `*` means every origin.
func CheckOrigin(origin string) string {
	if origin == "*" {
		return ""
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" ||
		strings.Contains(u.Host, "*") || origin != strings.ToLower(origin) {
		return "must be an origin such as https://shop.example, in lower case and without a path, or * for every origin"
	}
	return ""
}
