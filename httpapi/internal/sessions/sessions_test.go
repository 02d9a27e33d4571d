package sessions

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// A session speaks for what carries its cookie; for a change with its token alone, and never for another site.
func TestSpeak(t *testing.T) {
	ended := false
	s, err := New(nil, false, time.Now, func(_ context.Context, id string) error {
		if ended || id != "s-1" {
			return errEnded
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	value, is, err := s.Begin("s-1", "the-key", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, method, path string
		headers            []string
		key                string
		refused            bool
	}{
		{"reading", "GET", "/v1/claims", nil, "Bearer the-key", false},
		{"a page", "GET", "/console/", nil, "", false},
		{"a token of its own", "GET", "/v1/claims", []string{"Authorization", "Bearer dev_42"}, "Bearer dev_42", false},
		{"a change", "POST", "/v1/campaigns", []string{headerCSRF, is.CSRF}, "Bearer the-key", false},
		{"a change without the token", "POST", "/v1/campaigns", nil, "", true},
		{"a change by another site", "POST", "/v1/campaigns", []string{headerCSRF, is.CSRF, "Sec-Fetch-Site", "cross-site"}, "", true},
		{"signing in", "POST", Path, nil, "", false},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.AddCookie(&http.Cookie{Name: Cookie, Value: value})
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		signed, err := s.Speak(r)
		if refused := errors.Is(err, dibs.ErrForbidden); refused != c.refused {
			t.Errorf("%s: %v", c.name, err)
		} else if !refused && signed.Header.Get("Authorization") != c.key {
			t.Errorf("%s: it speaks for %q", c.name, signed.Header.Get("Authorization"))
		}
		if len(c.headers) == 0 && r.Header.Get("Authorization") != "" {
			t.Errorf("%s: the caller's own request was changed", c.name)
		}
	}
	ended = true
	r := httptest.NewRequest("GET", "/v1/claims", nil)
	r.AddCookie(&http.Cookie{Name: Cookie, Value: value})
	if signed, err := s.Speak(r); err != nil || signed.Header.Get("Authorization") != "" {
		t.Errorf("a session that was ended speaks: %v", err)
	}
}

// TestSetKey: another key opens no cookie of the one before, and seals those of later; one that is none changes nothing.
func TestSetKey(t *testing.T) {
	s, err := New(make([]byte, KeySize), false, time.Now, func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *http.Request {
		value, _, err := s.Begin("s-1", "the-key", time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/v1/claims", nil)
		r.AddCookie(&http.Cookie{Name: Cookie, Value: value})
		return r
	}
	before := begin()
	err = s.SetKey(make([]byte, KeySize-1))
	if _, ok := s.Of(before); !ok || err == nil {
		t.Errorf("a short key: %t, %v", ok, err)
	}
	if err := s.SetKey(bytes.Repeat([]byte{7}, KeySize)); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Of(before); ok {
		t.Error("a cookie of the key before is opened")
	}
	if _, ok := s.Of(begin()); !ok {
		t.Error("a cookie of the new key is not opened")
	}
}
