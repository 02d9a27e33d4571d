package oidc

import (
	"maps"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/access"
)

// TestConfig: everything that is wrong is said at once.
func TestConfig(t *testing.T) {
	if _, err := New(Config{Issuer: "http://login.example", Address: "https://a.example/console", Roles: map[string]access.Role{"x": "boss"}}); err == nil {
		t.Error("taken")
	} else {
		for _, part := range []string{"the issuer must begin with https://", "the address must end with its host", "client id is required", `the group "x" has the role "boss"`} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("says nothing of %q: %v", part, err)
			}
		}
	}
	for text, ok := range map[string]bool{
		"https://login.example.com": true, "https://login.example.com/realms/shop": true, "http://127.0.0.1:8080": true, "http://[::1]:8080": true, "http://localhost": true,
		"http://login.example.com": false, "login.example.com": false, "ftp://x": false, "https://": false, "https://a:b@login.example.com": false,
		"https://login.example.com?x=1": false, "https://login.example.com#x": false, "https://" + strings.Repeat("x", maxIssuer): false,
	} {
		if err := CheckIssuer(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, ok := range map[string]bool{"https://admin.example": true, "https://admin.example/": false, "https://admin.example/console/oidc/callback": false, "http://admin.example": false} {
		if err := CheckAddress(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestParseRoles reads roles of groups, whose names may have an equals sign.
func TestParseRoles(t *testing.T) {
	roles, err := ParseRoles([]string{"ops=admin", "cn=desk,dc=shop=viewer"})
	if want := map[string]access.Role{"ops": access.RoleAdmin, "cn=desk,dc=shop": access.RoleViewer}; err != nil || !maps.Equal(roles, want) {
		t.Errorf("%v, %v", roles, err)
	}
	for _, bad := range [][]string{{"ops"}, {"=admin"}, {"ops=boss"}, {"ops="}, {"ops=admin", "ops=viewer"}} {
		if _, err := ParseRoles(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
