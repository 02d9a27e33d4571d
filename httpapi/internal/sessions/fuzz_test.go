package sessions

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// FuzzCookie: whatever cookies a browser sends, they speak for the one key that was sealed,
// or for none.
func FuzzCookie(f *testing.F) {
	// The processes of a run have one key and one time.
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	s, err := New(bytes.Repeat([]byte{7}, KeySize), false, func() time.Time { return noon }, func(context.Context, string) error { return nil })
	if err != nil {
		f.Fatal(err)
	}
	value, _, err := s.Begin("s-1", "the-key", noon.Add(24*time.Hour))
	if err != nil {
		f.Fatal(err)
	}
	signIn, err := s.Seal("sign-in", Session{ID: "s-1", Key: "another", Until: noon.Add(time.Hour).Unix()})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{value, signIn, "", "=", value[1:], value + "A", "a; dibs_session=" + value, strings.Repeat("A", 64), "\"" + value + "\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/claims", nil)
		r.Header["Cookie"] = []string{Cookie + "=" + text}
		signed, err := s.Speak(r)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if is := signed.Header.Get("Authorization"); is != "" && is != "Bearer the-key" {
			t.Fatalf("%q speaks as %q", text, is)
		}
	})
}
