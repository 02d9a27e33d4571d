package sinks_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/webhooks"
)

// TestWebhooks: an endpoint gets what it wants, signed, in order for each
// claim, though it fails now and then.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	r, picky := newReceiver(t), newReceiver(t)
	s := hooked(t, true, 40)
	r.mu.Lock()
	e := s.endpoint(webhooks.EndpointSpec{URL: r.URL + "/hook?token=1"})
	r.secret = e.Secret
	r.behave = func(w http.ResponseWriter, n int) {
		if n%7 == 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	r.mu.Unlock()
	few := s.endpoint(webhooks.EndpointSpec{URL: picky.URL, Types: []string{"dev.dibs.claim.shipped"}})
	ids := s.buy("a", 20)
	await(t, "all deliveries", func() bool {
		return len(s.deliveries(e.ID, webhooks.DeliveryDelivered)) == 50 && len(s.deliveries(few.ID, webhooks.DeliveryDelivered)) == 10
	})
	w := newTally(t, ids)
	r.mu.Lock()
	for _, id := range r.got {
		w.take(id, r.bodies[id])
	}
	r.mu.Unlock()
	if w.left != 0 || w.twice == 0 {
		t.Errorf("%d events are missing, %d came twice", w.left, w.twice)
	}

	next, err := s.node.Service.Webhooks.RotateSecret(t.Context(), e.ID, webhooks.RotateSpec{})
	if err != nil || next.Secret == e.Secret {
		t.Fatalf("the rotated secret is %v: %v", next, err)
	}
	// Both secrets sign now: first the old one is asked for, then the new one.
	for _, secret := range []string{e.Secret, next.Secret} {
		r.mu.Lock()
		r.secret = secret
		r.mu.Unlock()
		id, err := s.node.Service.Webhooks.Test(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the event that tries it", func() bool { return r.times(id) > 0 })
	}
	before := r.times(ids[0] + ".0")
	if n, err := s.node.Service.Webhooks.Redeliver(t.Context(), e.ID, ids[0]+".0"); err != nil || n != 1 {
		t.Fatalf("%d redelivered: %v", n, err)
	}
	await(t, "the event again", func() bool { return r.times(ids[0]+".0") > before })
}

// TestWebhookAnswers: what is no 2xx is tried again and given up; 410 disables
// the endpoint; redirects are not followed; who does not answer is not waited
// for.
func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	elsewhere := newReceiver(t)
	s := hooked(t, true, 4)
	stuck := make(chan struct{})
	defer close(stuck)
	for _, c := range []struct {
		name     string
		behave   func(w http.ResponseWriter, n int)
		problem  string
		attempts int
		disabled bool
	}{
		{"bad", func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusBadRequest) }, "400 Bad Request", 4, false},
		{"gone", func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusGone) }, "410 Gone", 1, true},
		{"moved", func(w http.ResponseWriter, _ int) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "307: redirects are not followed", 4, false},
		{"cut", func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, "EOF", 4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver(t)
			r.behave = c.behave
			e := s.endpoint(webhooks.EndpointSpec{URL: r.URL, Types: []string{"dev.dibs.claim.granted"}})
			id, err := s.node.Service.Webhooks.Test(t.Context(), e.ID)
			if err != nil {
				t.Fatal(err)
			}
			await(t, "the end of it", func() bool { return len(s.deliveries(e.ID, webhooks.DeliveryFailed)) == 1 })
			d := s.deliveries(e.ID, "")[0]
			if d.EventID != id || d.Problem != c.problem || d.Attempts != c.attempts || r.times(id) != c.attempts {
				t.Errorf("the delivery is %+v, after %d attempts", d, r.times(id))
			}
			disabled := func() bool {
				now, err := s.node.Service.Webhooks.Get(t.Context(), e.ID)
				return err == nil && now.Disabled == c.disabled
			}
			await(t, "the endpoint's state", disabled)
		})
	}
	if elsewhere.times("") > 0 || len(elsewhere.got) > 0 {
		t.Error("a redirect was followed")
	}
	t.Run("slow", func(t *testing.T) {
		r := newReceiver(t)
		slow := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			// Only then does the server notice that the other side has gone.
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			select {
			case <-stuck:
			case <-req.Context().Done():
			}
		})
		r.Config.Handler = slow
		e := s.endpoint(webhooks.EndpointSpec{URL: r.URL})
		if _, err := s.node.Service.Webhooks.Test(t.Context(), e.ID); err != nil {
			t.Fatal(err)
		}
		await(t, "an attempt that was given up", func() bool {
			l := s.deliveries(e.ID, "")
			return len(l) == 1 && l[0].Attempts > 0 && l[0].Problem == "no answer in time"
		})
	})
}

// TestWebhookPrivate: addresses of private networks are refused when they are
// given, and whatever a name resolves to when it is connected to.
func TestWebhookPrivate(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := hooked(t, false, 4)
	for i, address := range []string{r.URL, strings.Replace(r.URL, "127.0.0.1", "localhost", 1), "http://[::1]:1/", "http://[::ffff:127.0.0.1]:1/"} {
		if _, err := s.node.Service.Webhooks.Create(t.Context(), webhooks.EndpointSpec{URL: address}); !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("the address %s was taken: %v", address, err)
		}
		// The ledger takes it: from here on it is refused when it is connected to.
		e := &webhooks.WebhookEndpoint{ID: fmt.Sprintf("e%d", i), URL: address, Secret: "whsec_MDEyMw==", Version: 1}
		if err := s.node.Ledger.InsertEndpoint(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if _, err := s.node.Service.Webhooks.Test(t.Context(), e.ID); err != nil {
			t.Fatal(err)
		}
		await(t, "a refusal of "+address, func() bool {
			l := s.deliveries(e.ID, webhooks.DeliveryFailed)
			return len(l) == 1 && l[0].Problem == "the address is in a private network"
		})
	}
	if len(r.got) > 0 {
		t.Error("a private address got an event")
	}
}

// TestWebhookOrder: what follows a delivery that waits, of the same claim, waits
// with it, and others go on.
func TestWebhookOrder(t *testing.T) {
	t.Parallel()
	s := hooked(t, true, 90)
	r := newReceiver(t)
	var first string
	open := false
	r.behave = func(w http.ResponseWriter, _ int) {
		id := r.got[len(r.got)-1]
		if first == "" && strings.HasSuffix(id, ".0") {
			first = id
		}
		if id == first && !open {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	e := s.endpoint(webhooks.EndpointSpec{URL: r.URL})
	ids := s.buy("a", 10)
	await(t, "the others", func() bool { return len(s.deliveries(e.ID, webhooks.DeliveryDelivered)) >= 22 })
	r.mu.Lock()
	if claim, _, _ := strings.Cut(first, "."); claim == "" || r.bodies[claim+".1"] != "" {
		t.Errorf("the second event of claim %q overtook the first", claim)
	}
	open = true
	r.mu.Unlock()
	await(t, "the rest", func() bool { return len(s.deliveries(e.ID, webhooks.DeliveryDelivered)) == 25 })
	w := newTally(t, ids)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.got {
		w.take(id, r.bodies[id])
	}
	if w.left != 0 {
		t.Errorf("%d events are missing", w.left)
	}
}
