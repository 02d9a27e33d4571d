package signin

import (
	"net/http/httptest"
	"net/url"
	"testing"
)

// elsewhere is a provider that sends browsers back to another host.
type elsewhere struct{ People }

func (elsewhere) Console() *url.URL { return &url.URL{Scheme: "https", Host: "admin.example"} }

// TestLeaveFromAnotherHost: a browser that begins at another address of the console goes to the one to which the
// provider sends it back, with what it asked for, and only once.
func TestLeaveFromAnotherHost(t *testing.T) {
	d := &Door{People: elsewhere{}}
	w := httptest.NewRecorder()
	if err := d.Leave(w, httptest.NewRequest("GET", "http://127.0.0.1:8081/console/oidc?to=/console/orders", nil)); err != nil {
		t.Fatal(err)
	}
	if at := w.Header().Get("Location"); w.Code != 302 || at != "https://admin.example/console/oidc?moved=1&to=%2Fconsole%2Forders" {
		t.Errorf("%d %s", w.Code, at)
	}
	for host, same := range map[string]bool{"admin.example": true, "ADMIN.example:443": true, "admin.example:8443": false, "admin.example.evil": false, "": false} {
		if sameHost(host, d.People.Console()) != same {
			t.Errorf("%s: %v", host, !same)
		}
	}
	if plain := (&url.URL{Scheme: "http", Host: "localhost:80"}); !sameHost("localhost", plain) || sameHost("localhost:443", plain) {
		t.Error("the port of plain HTTP is 80")
	}
}
