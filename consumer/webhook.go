package consumer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// ErrSignature: the request is not from who knows the secret, or is too old.
var ErrSignature = errors.New("consumer: the webhook's signature is not valid")

// maxEvent bounds the body of a webhook.
const maxEvent = 1 << 20

// tolerance is how far the time of a webhook may be from now.
const tolerance = 5 * time.Minute

// Verify reads a request that a webhook of dibs sent and returns its event,
// once its signature is found to be one of a secret, by the scheme of Standard
// Webhooks, and its time within five minutes of now. Several secrets are for
// the time in which they change. ErrSignature for everything else.
func Verify(r *http.Request, now time.Time, secrets ...string) (*events.Event, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxEvent+1))
	if err != nil {
		return nil, fmt.Errorf("consumer: reading the webhook: %w", err)
	}
	id, stamp := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || len(body) > maxEvent || id == "" || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return nil, ErrSignature
	}
	if !signed(id+"."+stamp+".", body, r.Header.Get("Webhook-Signature"), secrets) {
		return nil, ErrSignature
	}
	var e events.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("consumer: the webhook's event: %w", err)
	}
	if e.ID != id {
		return nil, ErrSignature
	}
	return &e, nil
}

// signed reports whether one of the signatures is that of one of the secrets.
func signed(head string, body []byte, signatures string, secrets []string) bool {
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, webhooks.SecretPrefix))
		if err != nil || len(key) == 0 {
			continue
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(head))
		mac.Write(body)
		want := mac.Sum(nil)
		for one := range strings.FieldsSeq(signatures) {
			given, ok := strings.CutPrefix(one, "v1,")
			got, err := base64.StdEncoding.DecodeString(given)
			if ok && err == nil && hmac.Equal(got, want) {
				return true
			}
		}
	}
	return false
}

// Seen remembers the ids of the last events of one process, so that repeats can
// be told. It is safe for concurrent use. Work that must not be done twice
// after a crash needs a memory that lasts: a unique key beside the work.
//
// mu guards all of it. ids has the place in ring of each id that is remembered, and nothing
// else; next is the place whose id is forgotten for the next new one.
type Seen struct {
	mu   sync.Mutex
	ids  map[string]int
	ring []string
	next int
}

// NewSeen remembers up to max ids, 1 or more.
func NewSeen(max int) *Seen { return &Seen{ids: make(map[string]int, max), ring: make([]string, max)} }

// Before reports whether an id was there before, and remembers it.
func (s *Seen) Before(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.ids[id]; ok {
		return true
	}
	delete(s.ids, s.ring[s.next])
	s.ids[id], s.ring[s.next] = s.next, id
	s.next = (s.next + 1) % len(s.ring)
	return false
}

// Forget makes an id new again, after work that failed.
func (s *Seen) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.ids[id]; ok {
		delete(s.ids, id)
		s.ring[at] = ""
	}
}
