package clitest

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/dibs-dev/dibs/consumer"
)

// Webhook takes what a server posts to a webhook. mu guards all of it.
type Webhook struct {
	mu     sync.Mutex
	secret string
	bodies []string
	faults []error
}

// ServeHTTP takes an event with a good signature.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		// A test killed the sender.
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := consumer.Verify(r, time.Now(), h.secret); err != nil {
		h.faults = append(h.faults, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	h.bodies = append(h.bodies, string(body))
}

// SetSecret sets the secret that signatures are checked with. Requests that come while
// create runs, which makes the webhook and so the secret, wait for it.
func (h *Webhook) SetSecret(create func() string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secret = create()
}

// Took returns the bodies so far, and what was wrong with requests of a bad
// signature.
func (h *Webhook) Took() (bodies []string, faults []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.bodies...), append([]error(nil), h.faults...)
}
