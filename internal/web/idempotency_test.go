package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
)

// onePlace remembers answers by caller and key.
type onePlace map[string]access.StoredRequest

func (m onePlace) Remember(_ context.Context, caller, key string, hash []byte, do func() (int, []byte, error)) (access.StoredRequest, bool, error) {
	if was, ok := m[caller+key]; ok {
		if !bytes.Equal(was.Hash, hash) {
			return was, false, dibs.ErrKeyReused
		}
		return was, true, nil
	}
	status, body, err := do()
	if err != nil {
		return access.StoredRequest{}, false, err
	}
	m[caller+key] = access.StoredRequest{Status: status, Body: body, Hash: hash}
	return m[caller+key], false, nil
}

// issued is an answer with a secret.
type issued struct {
	Secret string `json:"secret,omitempty"`
}

func (issued) Remembered() any { return issued{} }

// change makes a change with a header line or none, and returns the answer.
func (m onePlace) change(t *testing.T, method, path, caller, key, body string, do func(context.Context) (any, error)) (Answer, error) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if key != "" {
		r.Header.Set(HeaderKey, key)
	}
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatal(err)
	}
	return Do(t.Context(), m, Change{Request: r, Caller: caller, Body: value, Status: 201}, do)
}

// A key in quotes is the String of RFC 9651, and the same key as the bare one.
func TestIdempotencyKey(t *testing.T) {
	for header, want := range map[string]string{
		`k`: "k", `"k"`: "k", `"8e03978e-40d5"`: "8e03978e-40d5", `"a b"`: "a b", `"a\"b\\c"`: `a"b\c`, `it"s`: `it"s`, `a\b`: `a\b`,
		`"` + strings.Repeat("x", dibs.MaxKeyLen) + `"`: strings.Repeat("x", dibs.MaxKeyLen),
		// A value that is no String, or too long, or empty, is refused.
		``: "", `""`: "", `"`: "", `"k`: "", `k l`: "", `"k"l"`: "", `"k\"`: "", `"\k"`: "", `"k";a=1`: "", "\"k\tl\"": "", `"é"`: "",
		strings.Repeat("x", dibs.MaxKeyLen+1): "", `"` + strings.Repeat("x", dibs.MaxKeyLen+1) + `"`: "",
	} {
		got, err := IdempotencyKey(http.Header{HeaderKey: {header}})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is the key %q, %v; want %q", header, got, err, want)
		}
	}
	if key, err := IdempotencyKey(http.Header{}); key != "" || err != nil {
		t.Errorf("without a header the key is %q, %v", key, err)
	}
	if _, err := IdempotencyKey(http.Header{HeaderKey: {"k", "k"}}); err == nil {
		t.Error("two headers were taken")
	}
}

// A repeat gets the first answer; whatever differs from the first request is not a
// repeat.
func TestDo(t *testing.T) {
	m, done := onePlace{}, 0
	do := func(context.Context) (any, error) { done++; return map[string]int{"n": done}, nil }
	for _, c := range []struct {
		what, method, path, caller, key, body string
		want                                  string
		replayed                              bool
	}{
		{"the first", "POST", "/a", "ann", "k", `{"x":1,"y":2}`, `{"n":1}`, false},
		{"its repeat, with the members in another order", "POST", "/a", "ann", "k", `{"y":2,"x":1}`, `{"n":1}`, true},
		{"its repeat, with the key in quotes", "POST", "/a", "ann", `"k"`, `{"x":1,"y":2}`, `{"n":1}`, true},
		{"another caller", "POST", "/a", "bob", "k", `{"x":1,"y":2}`, `{"n":2}`, false},
		{"another key", "POST", "/a", "ann", "l", `{"x":1,"y":2}`, `{"n":3}`, false},
		{"another body", "POST", "/a", "ann", "k", `{"x":1}`, "", false},
		{"another address", "POST", "/b", "ann", "k", `{"x":1,"y":2}`, "", false},
		{"a key with a space", "POST", "/a", "ann", "a b", `{}`, "", false},
		{"a PATCH", "PATCH", "/a", "ann", "k", `{"x":1,"y":2}`, `{"n":4}`, false},
		{"no key", "POST", "/a", "ann", "", `{"x":1,"y":2}`, `{"n":5}`, false},
	} {
		a, err := m.change(t, c.method, c.path, c.caller, c.key, c.body, do)
		status := map[bool]int{true: 200, false: 201}[c.replayed]
		if c.want == "" {
			status = 0
		}
		if (err == nil) != (c.want != "") || string(a.Body) != c.want || a.Replayed != c.replayed || a.Status != status {
			t.Errorf("%s: %d %s, replayed %v, %v", c.what, a.Status, a.Body, a.Replayed, err)
		}
	}
}

// A failure is not remembered, and a secret is shown once.
func TestDoKeepsNoErrorsAndNoSecrets(t *testing.T) {
	m := onePlace{}
	failed := errors.New("the ledger is gone")
	if _, err := m.change(t, "POST", "/a", "ann", "k", `{}`, func(context.Context) (any, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	issue := func(context.Context) (any, error) { return issued{"hush"}, nil }
	for i, want := range []string{`{"secret":"hush"}`, `{}`} {
		if a, err := m.change(t, "POST", "/a", "ann", "k", `{}`, issue); err != nil || string(a.Body) != want {
			t.Errorf("answer %d: %s, %v", i, a.Body, err)
		}
	}
	for _, stored := range m {
		if strings.Contains(string(stored.Body), "hush") {
			t.Errorf("the memory has %s", stored.Body)
		}
	}
	if a, err := m.change(t, "POST", "/a", "ann", "", `{}`, issue); err != nil || string(a.Body) != `{"secret":"hush"}` {
		t.Errorf("without a key: %s, %v", a.Body, err)
	}
}
