package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"net/http"
)

// once runs a change. With an Idempotency-Key on a POST, the service remembers
// the answer, and a repeat of the same request gets it with status 200.
// Refusals and errors are not remembered: nothing was changed.
func (a *api) once(ctx context.Context, c *call, body any, set func([]byte), status *int, do func() (any, error)) error {
	// first is the answer, when another one is remembered.
	var first []byte
	run := func() (int, []byte, error) {
		v, err := do()
		if err != nil {
			return 0, nil, err
		}
		raw, err := encodeJSON(v)
		if s, ok := v.(secretive); ok && err == nil {
			first = raw
			raw, err = encodeJSON(s.Remembered())
		}
		return *status, raw, err
	}
	key, err := idempotencyKey(c.request.Header)
	if err != nil {
		return err
	}
	if key == "" || c.request.Method != http.MethodPost {
		_, raw, err := run()
		if first != nil {
			raw = first
		}
		set(raw)
		return err
	}
	hash, err := requestHash(c.request, body)
	if err != nil {
		return err
	}
	stored, replayed, err := a.svc.Remember(ctx, c.who.name(), key, hash, run)
	if err != nil {
		return err
	}
	set(stored.Body)
	*status = stored.Status
	if replayed {
		*status = http.StatusOK
		c.Header()[headerReplayed] = isTrue
	} else if first != nil {
		set(first)
	}
	return nil
}

// secretive is an answer with a secret in it, which is shown once.
type secretive interface {
	// Remembered is what is kept of the answer, and answers a repeat.
	Remembered() any
}

// requestHash covers method, path and body; the order and the spacing of a
// body's members do not matter.
func requestHash(r *http.Request, body any) ([]byte, error) {
	canonical, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	h.Write([]byte(r.Method + "\n" + r.URL.Path + "\n"))
	h.Write(canonical)
	return h.Sum(nil), nil
}

// onceRef names a change after its caller and key, so that it happens once
// even when the memory of its answer was lost; "" without a key.
func onceRef(c *call) (string, error) {
	key, err := idempotencyKey(c.request.Header)
	if err != nil || key == "" {
		return "", err
	}
	sum := sha256.Sum256([]byte(c.who.name() + "\n" + key))
	return base32.StdEncoding.EncodeToString(sum[:15]), nil
}
