package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs/httpapi"
)

// signed is a token of a user as an Authorization line.
func signed(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	claims["exp"] = time.Now().Add(time.Hour).Unix()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(jwtSecret))
	must(t, err)
	return "Authorization: Bearer " + token
}

// A revoked token is refused everywhere at once, also when it was verified a moment ago: by its
// jti that one alone, by its user all that were issued before.
func TestRevokedTokens(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), Revoked: svc.Revocations.Has})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 50, 50)
	now := time.Now().Unix()
	tokens := map[string]string{
		"one": signed(t, jwt.MapClaims{"sub": "42", "jti": "one", "iat": now - 60}), "two": signed(t, jwt.MapClaims{"sub": "42", "jti": "two", "iat": now - 60}),
		"no iat": signed(t, jwt.MapClaims{"sub": "42"}), "later": signed(t, jwt.MapClaims{"sub": "42", "iat": now + 10}), "other": signed(t, jwt.MapClaims{"sub": "7", "iat": now - 60}),
	}
	judge := func(when string, refused ...string) {
		t.Helper()
		for name, token := range tokens {
			want := 201
			for _, r := range refused {
				if r == name {
					want = 401
				}
			}
			claim := s.ask("POST", "/v1/campaigns/phone/claims", "", token)
			mine := s.ask("GET", "/v1/me/claims", "", token)
			if claim.status != want || mine.status == 401 != (want == 401) {
				t.Errorf("%s, the token %q: %d and %d, want %d", when, name, claim.status, mine.status, want)
			}
		}
	}
	revoke := func(body string) string {
		t.Helper()
		a := s.ask("POST", "/v1/token-revocations", body, asAdmin)
		if a.status != 201 || a.header.Get("Location") == "" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return fmt.Sprint(a.json["id"])
	}
	judge("before")
	id := revoke(`{"jti":"one"}`)
	judge("by jti", "one")
	revoke(`{"user_id":"42","why":"the account was taken over"}`)
	judge("by user", "one", "two", "no iat")
	if a := s.ask("DELETE", "/v1/token-revocations/"+id, "", asAdmin); a.status != 200 || a.json["jti"] != "one" {
		t.Errorf("%d %s", a.status, a.body)
	}
	list := s.ask("GET", "/v1/token-revocations", "", asAdmin)
	if items := list.json["items"].([]any); len(items) != 1 {
		t.Errorf("%s", list.body)
	}
	if a := s.ask("DELETE", "/v1/token-revocations/"+id, "", asAdmin); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.ask("POST", "/v1/token-revocations", `{}`, asAdmin); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
