package httpapi_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/tokens"
)

func TestDevTokensOnlyInDevelopment(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret)})
	must(t, err)
	s := serve(t, svc, h)
	if a := s.ask("GET", "/v1/me/claims", "", asUser); a.status != 401 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/me/claims", "", jwtFor(t, "42", time.Hour)); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A token that was remembered stops to be valid all the same.
func TestRememberedTokensExpire(t *testing.T) {
	svc := newService(t)
	clock := time.Now()
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), Now: func() time.Time { return clock }})
	must(t, err)
	s := serve(t, svc, h)
	token := jwtFor(t, "42", time.Minute)
	for _, step := range []struct {
		pass   time.Duration
		status int
	}{{0, 200}, {0, 200}, {time.Minute + 20*time.Second, 200}, {15 * time.Second, 401}, {0, 401}} {
		clock = clock.Add(step.pass)
		if a := s.ask("GET", "/v1/me/claims", "", token); a.status != step.status {
			t.Errorf("after %s: %d, want %d", step.pass, a.status, step.status)
		}
	}
}

// A token that was remembered is refused as soon as its secret is taken away.
func TestRememberedTokensRotate(t *testing.T) {
	svc := newService(t)
	v, err := tokens.Open(t.Context(), tokens.Config{Secrets: [][]byte{[]byte(jwtSecret)}})
	must(t, err)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), Users: v, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	must(t, err)
	s := serve(t, svc, h)
	token := jwtFor(t, "42", time.Hour)
	for range 2 {
		if a := s.ask("GET", "/v1/me/claims", "", token); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	v.SetSecrets([][]byte{[]byte("the next secret, of 32 bytes too")})
	if a := s.ask("GET", "/v1/me/claims", "", token); a.status != 401 {
		t.Errorf("under a secret that was taken away: %d", a.status)
	}
}
