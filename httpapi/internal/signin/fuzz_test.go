package signin

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// FuzzInside: wherever a link asks to be led after a sign-in, a browser stays at this host,
// below the console, and begins no other sign-in.
func FuzzInside(f *testing.F) {
	for _, seed := range []string{
		"/console/", "/console/orders?status=paid#x", "//evil.example/console/", "/console/../../evil", "/console/%2e%2e/v1/keys", "/console/\\evil.example",
		"https://evil.example/console/", "/console/oidc", "/console/x/../oidc/callback", "/console/\t/evil", "", "/console/%5c%5cevil", "/console/..;/v1",
	} {
		f.Add(seed)
	}
	here := &url.URL{Scheme: "https", Host: "admin.example", Path: "/console/"}
	f.Fuzz(func(t *testing.T, to string) {
		led := inside(to)
		if led == "" {
			return
		}
		u, err := here.Parse(led)
		if err != nil || u.Host != here.Host || u.Scheme != here.Scheme || u.User != nil {
			t.Fatalf("%q leads to %v, %v", to, u, err)
		}
		clean := path.Clean(u.Path)
		if clean != "/console" && !strings.HasPrefix(clean, "/console/") || clean == Path || strings.HasPrefix(clean, Path+"/") {
			t.Fatalf("%q leads to %s", to, clean)
		}
		for _, c := range led {
			if c == '\\' || c < ' ' {
				t.Fatalf("%q leads to %q", to, led)
			}
		}
	})
}
