package httpapi

import "testing"

// TestCallersAreToldApart: what is remembered of one caller's request no other caller is
// answered with, a user who is called like a key's id included.
func TestCallersAreToldApart(t *testing.T) {
	of := map[string]caller{}
	for _, c := range []caller{{user: "alice"}, {user: "bob"}, {user: "key_1"}, {key: "key_1"}, {key: "key_2", keyName: "alice"}, {user: "user:alice"}} {
		name := c.name()
		if other, taken := of[name]; taken {
			t.Errorf("%+v and %+v are both %q", c, other, name)
		}
		of[name] = c
	}
}
