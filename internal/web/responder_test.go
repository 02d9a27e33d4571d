package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// Over TLS, browsers are told to stay with it; over plain HTTP they would not listen.
func TestBeginUnderTLS(t *testing.T) {
	a, err := NewResponder(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for scheme, want := range map[string]string{"https": "max-age=31536000", "http": ""} {
		w := httptest.NewRecorder()
		a.Begin(w, httptest.NewRequest(http.MethodGet, scheme+"://shop.example/v1/time", nil))
		if got := w.Header().Get("Strict-Transport-Security"); got != want {
			t.Errorf("over %s: %q, want %q", scheme, got, want)
		}
	}
}

// Causes are logged where the server is to blame, and not where the caller is, where
// overload is counted, or where a handler made the problem on purpose.
func TestFailLogsCauses(t *testing.T) {
	cause := errors.New("the disk is full")
	for _, c := range []struct {
		err    error
		status int
		logged bool
	}{
		{cause, 500, true},
		{dibs.Unavail(dibs.EffectNone, cause), 503, true},
		{&dibs.Error{Reason: dibs.Overloaded, Cause: cause}, 503, false},
		{&dibs.Error{Reason: dibs.NotFound, Cause: cause}, 404, false},
		{Problem{Reason: dibs.Unavailable}, 503, false},
	} {
		var log bytes.Buffer
		a, w := newResponder(t, slog.New(slog.NewTextHandler(&log, nil))), httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		id := a.Begin(w, r)
		a.Fail(w, r, id, c.err)
		var p api.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Status != c.status || p.RequestID != id || strings.Contains(w.Body.String(), "disk") {
			t.Errorf("%v: %d %s, %v", c.err, w.Code, w.Body, err)
		}
		said := strings.Contains(log.String(), "the disk is full") && strings.Contains(log.String(), id)
		if said != c.logged || log.Len() > 0 != c.logged {
			t.Errorf("%v: logged %q", c.err, log.String())
		}
	}
}

// A panic is answered where nothing was sent yet; else the connection is cut.
func TestRecovered(t *testing.T) {
	a := newResponder(t, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		fault     any
		sent, cut bool
	}{{"oh", false, false}, {"oh", true, true}, {http.ErrAbortHandler, false, true}, {http.ErrAbortHandler, true, true}} {
		w := httptest.NewRecorder()
		again := func() (again any) {
			defer func() { again = recover() }()
			a.Recovered(w, httptest.NewRequest("GET", "/", nil), "id", c.fault, c.sent)
			return nil
		}()
		if (again == http.ErrAbortHandler) != c.cut || !c.cut && w.Code != http.StatusInternalServerError || c.cut && w.Body.Len() > 0 {
			t.Errorf("%v, sent %v: %v, %d %s", c.fault, c.sent, again, w.Code, w.Body)
		}
	}
}

// Interim answers do not count as the answer.
func TestRecorder(t *testing.T) {
	r := &Recorder{ResponseWriter: httptest.NewRecorder()}
	r.WriteHeader(http.StatusProcessing)
	if r.Status != 0 {
		t.Errorf("after 102: %d", r.Status)
	}
	r.WriteHeader(http.StatusTeapot)
	if r.Status != http.StatusTeapot {
		t.Errorf("after 418: %d", r.Status)
	}
	r = &Recorder{ResponseWriter: httptest.NewRecorder()}
	if _, err := r.Write([]byte("x")); err != nil || r.Status != http.StatusOK {
		t.Errorf("after a body: %d, %v", r.Status, err)
	}
}

func TestRequestIDs(t *testing.T) {
	a, seen := newResponder(t, slog.New(slog.DiscardHandler)), map[string]bool{}
	for given, kept := range map[string]bool{"abc-123": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "": false, "é": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set(HeaderRequestID, given)
		w := httptest.NewRecorder()
		id := a.Begin(w, r)
		if (id == given) != kept || w.Header().Get(HeaderRequestID) != id || seen[id] {
			t.Errorf("%q is %q, and %v", given, id, w.Header())
		}
		seen[id] = true
	}
}
