package config

import (
	"strings"
	"testing"
)

// TestRulesByVerb: each verb refuses what would hurt there, and only there.
func TestRulesByVerb(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	good := []string{"DIBS_JWT_SECRET=" + secret, "DIBS_ADMIN_KEY=" + secret}
	for _, c := range []struct {
		name    string
		rule    Rule
		environ []string
		args    []string
		// want are parts of the faults; without any there must be none.
		want []string
	}{
		{"serve", ServeRules, good, nil, nil},
		{"serve without secrets", ServeRules, nil, nil, []string{"jwt_secret (not set"}},
		{"serve with a short secret", ServeRules, []string{"DIBS_JWT_SECRET=short"}, nil, []string{"jwt_secret (env DIBS_JWT_SECRET): must be at least 32 bytes, this one has 5"}},
		{"serve with keys of an issuer", ServeRules, nil, []string{"--jwks-url", "https://i/keys"}, nil},
		{"serve in the open", ServeRules, good, []string{"--listen", "0.0.0.0:8080"}, []string{"listen (flag --listen): others could read tokens"}},
		{"serve behind a proxy", ServeRules, good, []string{"--listen", "0.0.0.0:8080", "--behind-proxy"}, nil},
		{"serve on all names of loopback", ServeRules, good, []string{"--listen", "localhost:80", "--admin-listen", "[::1]:81"}, nil},
		{"dev in the open", DevRules, nil, []string{"--listen", ":8080"}, []string{"listen (flag --listen): dev believes every client"}},
		{"dev with a ledger that outlives its journal", DevRules, nil, []string{"--ledger", "sqlite:x.db"}, []string{"ledger (flag --ledger)", "--data"}},
		{"dev on Redis with a ledger that does not stay", DevRules, nil, []string{"--engine", "redis://h"}, []string{"data (not set", "--data"}},
		{"dev with both in a folder", DevRules, nil, []string{"--ledger", "sqlite:x.db", "--data", "d"}, nil},
		{"dev with both in a server", DevRules, nil, []string{"--ledger", "mysql://u:p@h/d"}, nil},
		{"a client without a key", ClientRules(signedOut), nil, nil, []string{"admin_key (not set"}},
		{"a client without a server", ClientRules(signedOut), good, []string{"--url", "localhost"}, []string{"url (flag --url): must be an address"}},
		{"a client", ClientRules(signedOut), good, []string{"--url", "https://h"}, nil},
		{"a signer without a secret", TokenRules, nil, nil, []string{"jwt_secret (not set", "is required, at least 32 bytes"}},
		{"a signer", TokenRules, good, nil, nil},
		{"a key with spaces", ServerRules, nil, []string{"--admin-key", "sixteen and more "}, []string{"admin_key (flag --admin-key): must be 16 to 255 visible characters"}},
		{"a key like a JWT", ServerRules, nil, []string{"--admin-key", "eyJ0123456789abcdef"}, []string{"must not look like a user's token"}},
		{"a port too high", ServerRules, nil, []string{"--listen", "h:65536"}, []string{"must have a port from 0 to 65535"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, text := read(t, []Rule{c.rule}, c.environ, c.args...)
			if len(c.want) == 0 && text != "" {
				t.Errorf("refused: %s", text)
			}
			for _, part := range c.want {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in: %s", part, text)
				}
			}
		})
	}
}

// TestSeparateAdmin: administrators have an address of their own where other machines can
// reach that of the users, unless the settings say otherwise.
func TestSeparateAdmin(t *testing.T) {
	for _, c := range []struct {
		given Config
		want  string
	}{
		{Config{Listen: "127.0.0.1:8080"}, ""},
		{Config{Listen: "localhost:8080"}, ""},
		{Config{Listen: "0.0.0.0:8080"}, "127.0.0.1:8081"},
		{Config{Listen: ":8080", BehindProxy: true}, "127.0.0.1:8081"},
		{Config{Listen: "127.0.0.1:8080", BehindProxy: true}, "127.0.0.1:8081"},
		{Config{Listen: "[::1]:0", BehindProxy: true}, "127.0.0.1:0"},
		{Config{Listen: "127.0.0.1:8080", BehindProxy: true, AdminPublic: true}, ""},
		{Config{Listen: "192.0.2.7:0"}, "127.0.0.1:0"},
		{Config{Listen: "0.0.0.0:8080", AdminListen: "10.0.0.5:9090"}, "10.0.0.5:9090"},
		{Config{Listen: "0.0.0.0:8080", AdminPublic: true}, ""},
	} {
		got := c.given
		got.SeparateAdmin()
		if got.AdminListen != c.want {
			t.Errorf("with listen %s, admin_listen %q, admin_public %t: %q, want %q", c.given.Listen, c.given.AdminListen, c.given.AdminPublic, got.AdminListen, c.want)
		}
	}
}

// signedOut is for rules of users who have not signed in by dibs login.
func signedOut(string) bool { return false }
