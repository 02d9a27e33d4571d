package config

import (
	"strings"
	"testing"
)

// TestRulesByVerb: each verb refuses what would hurt there, and only there.
func TestRulesByVerb(t *testing.T) {
	secret := strings.Repeat("s", minJWTSecret)
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
		{"a client without a key", ClientRules, nil, nil, []string{"admin_key (not set"}},
		{"a client without a server", ClientRules, good, []string{"--url", "localhost"}, []string{"url (flag --url): must be an address"}},
		{"a client", ClientRules, good, []string{"--url", "https://h"}, nil},
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
