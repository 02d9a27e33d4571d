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
		"/console/x/../oidc//..",
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

// FuzzCommandLine: what a link says of a command line that waits is a port, the one spelling of a hash, and a state that
// has no more bytes than it may have and can stand in an address.
func FuzzCommandLine(f *testing.F) {
	const challenge = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
	for _, seed := range []string{challenge, "", challenge + "=", challenge[:40] + "\n" + challenge[40:], challenge[:42] + "V", strings.Repeat("\r", 9000) + challenge} {
		f.Add("4711", seed, "a-state")
		f.Add("0", seed, "a state")
	}
	f.Add("65536", challenge, "")
	f.Add("+80", challenge, strings.Repeat("s", 129))
	f.Fuzz(func(t *testing.T, port, challenge, state string) {
		l, err := readLine(url.Values{"port": {port}, "challenge": {challenge}, "state": {state}})
		if (l == nil) == (err == nil) {
			t.Fatalf("%q is %v and %v", port, l, err)
		}
		if err != nil {
			return
		}
		if l.Port == 0 || l.State != state || len(state) > maxState || l.Challenge != challenge || len(challenge) != 43 || strings.ContainsAny(challenge+state, " \r\n") {
			t.Errorf("%q, %q, %q is %+v", port, challenge, state, l)
		}
	})
}
