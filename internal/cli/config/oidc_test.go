package config

import (
	"strings"
	"testing"
)

// TestOIDCRules: an identity provider is set up as a whole or not at all, and each fault names its setting.
func TestOIDCRules(t *testing.T) {
	whole := []string{"--oidc-issuer", "https://login.example", "--oidc-client-id", "dibs", "--oidc-address", "https://admin.example", "--oidc-roles", "ops=admin"}
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"none", nil, nil},
		{"whole", whole, nil},
		{"only the rest", whole[2:], []string{"oidc_client_id (flag", "oidc_address (flag", "oidc_roles (flag", "needs oidc_issuer"}},
		{"only the issuer", whole[:2], []string{"oidc_client_id (not set", "oidc_address (not set", "oidc_roles (not set"}},
		{"a plain issuer", append(whole, "--oidc-issuer", "http://login.example"), []string{"oidc_issuer (flag", "https://"}},
		{"an address with a path", append(whole, "--oidc-address", "https://admin.example/console/"), []string{"oidc_address (flag", "must end with its host"}},
		{"no such role", append(whole[:6:6], "--oidc-roles", "ops=boss"), []string{"oidc_roles (flag", `"ops=boss" must be GROUP=ROLE`}},
	} {
		_, got := read(t, []Rule{oidcRules}, nil, c.args...)
		if len(c.says) == 0 && got != "" {
			t.Errorf("%s: %s", c.name, got)
		}
		for _, part := range c.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s says nothing of %q: %s", c.name, part, got)
			}
		}
	}
}
