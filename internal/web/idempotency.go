package web

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
)

var errBadKey = dibs.Invalid(dibs.Fault{
	Field: "/" + HeaderKey,
	Problem: dibs.Text{
		EN: "must be one header of 1-255 visible ASCII characters; in quotes, spaces may be among them",
		ZH: "必须是单个请求头，1-255 个可见 ASCII 字符；放在双引号里时可以含空格",
	},
})

// IdempotencyKey returns the key of a request, "" when there is none. A key that is
// not valid is an error, since the request would be done again.
//
// The header is that of draft-ietf-httpapi-idempotency-key-header-07: a String of RFC
// 9651, in quotes. Clients have always sent bare keys too, as other services take them,
// so "k" in quotes and k are one key. docs/REASONS.md lists where dibs differs.
func IdempotencyKey(h http.Header) (string, error) {
	v, given := h[HeaderKey]
	if !given {
		return "", nil
	}
	if len(v) != 1 {
		return "", errBadKey
	}
	key := v[0]
	if strings.HasPrefix(key, `"`) {
		if key, given = unquoted(key); !given || len(key) == 0 || len(key) > dibs.MaxKeyLen {
			return "", errBadKey
		}
		return key, nil
	}
	if !IsVisible(key, dibs.MaxKeyLen) {
		return "", errBadKey
	}
	return key, nil
}

// unquoted reads a String of RFC 9651, section 4.2.5: printable ASCII in quotes, where a
// backslash stands before a quote or a backslash and before nothing else. Parameters
// behind it are refused: the draft defines none.
func unquoted(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	inner := s[1 : len(s)-1]
	if !strings.ContainsAny(inner, `"\`) {
		// The usual key needs no copy.
		return inner, isPrintable(inner)
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(inner) || inner[i] != '"' && inner[i] != '\\' {
				return "", false
			}
		}
		out = append(out, inner[i])
	}
	return string(out), isPrintable(inner)
}

// isPrintable reports whether s has visible ASCII characters and spaces alone.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Memory remembers the answers to requests by caller and key.
type Memory interface {
	// Remember returns the answer that is remembered under the key, and true; else it
	// runs do and remembers what that returns. A key that was used for a request with
	// another hash is an error (idempotency_key_reused). Errors of do are returned and
	// not remembered.
	Remember(ctx context.Context, caller, key string, hash []byte, do func() (status int, body []byte, err error)) (access.StoredRequest, bool, error)
}

// secretive is an answer with a secret in it, which only the first caller sees.
type secretive interface {
	// Remembered is what is kept of the answer, and answers a repeat.
	Remembered() any
}

// Change is a request that changes something.
type Change struct {
	Request *http.Request
	// Caller tells callers apart: each has keys of its own.
	Caller string
	// Body is what the request says, in a form that json.Marshal writes the same way
	// for equal bodies.
	Body any
	// Status is that of the first answer.
	Status int
}

// Answer is the answer to a Change.
type Answer struct {
	Status int
	Body   []byte
	// Replayed says that an earlier request was answered with it first.
	Replayed bool
}

// Do runs a change and returns its answer as JSON. When the request is a POST with
// an Idempotency-Key, m remembers the answer, and a repeat of the request receives
// it with status 200, or again with 202: callers know by it that nothing is done yet.
// Refusals and errors are not remembered: they changed nothing.
//
// A change whose answer is remembered goes on when the client goes away. Cut off after
// it was made, it would be an error, and the repeat would make it again.
func Do(ctx context.Context, m Memory, c Change, do func(context.Context) (any, error)) (Answer, error) {
	key, err := IdempotencyKey(c.Request.Header)
	if err != nil {
		return Answer{}, err
	}
	// shown is the answer to this request, where another one is remembered.
	var shown []byte
	run := func(ctx context.Context) (int, []byte, error) {
		v, err := do(ctx)
		if err != nil {
			return 0, nil, err
		}
		raw, err := EncodeJSON(v)
		if s, ok := v.(secretive); ok && err == nil {
			shown = raw
			raw, err = EncodeJSON(s.Remembered())
		}
		return c.Status, raw, err
	}
	var stored access.StoredRequest
	replayed := false
	if key == "" || c.Request.Method != http.MethodPost {
		stored.Status, stored.Body, err = run(ctx)
	} else {
		var hash []byte
		if hash, err = c.hash(); err == nil {
			stored, replayed, err = m.Remember(ctx, c.Caller, key, hash, func() (int, []byte, error) { return run(context.WithoutCancel(ctx)) })
		}
	}
	switch {
	case err != nil:
		return Answer{}, err
	case replayed && stored.Status != http.StatusAccepted:
		stored.Status = http.StatusOK
	case shown != nil:
		stored.Body = shown
	}
	return Answer{Status: stored.Status, Body: stored.Body, Replayed: replayed}, nil
}

// hash covers method, path and body. The order and the spacing of a body's members
// do not count.
func (c *Change) hash() ([]byte, error) {
	canonical, err := json.Marshal(c.Body)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	h.Write([]byte(c.Request.Method + "\n" + c.Request.URL.Path + "\n"))
	h.Write(canonical)
	return h.Sum(nil), nil
}

// Ref names a change after its caller and key, so that the ledger makes it once
// even when the memory of its answer was lost; "" without a key.
func Ref(r *http.Request, caller string) (string, error) {
	key, err := IdempotencyKey(r.Header)
	if err != nil || key == "" {
		return "", err
	}
	sum := sha256.Sum256([]byte(caller + "\n" + key))
	return base32.StdEncoding.EncodeToString(sum[:15]), nil
}
