package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestEventStream sends frames over a connection, and looks at what a client gets.
func TestEventStream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := NewEventStream(w, time.Minute)
		if err != nil {
			t.Error(err)
			return
		}
		for _, frame := range []string{"retry: 1\n\n", "data: a\n\n"} {
			if err := s.Send([]byte(frame)); err != nil {
				t.Error(err)
			}
		}
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if string(raw) != "retry: 1\n\ndata: a\n\n" || err != nil {
		t.Errorf("got %q, error %v", raw, err)
	}
	if h := resp.Header; h.Get("Content-Type") != TypeEvents[0] || h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("got the headers %v", h)
	}
}

// TestEventStreamNeedsDeadlines has an answer that cannot be made a stream: it is left as it was.
func TestEventStreamNeedsDeadlines(t *testing.T) {
	w := httptest.NewRecorder()
	if _, err := NewEventStream(w, time.Minute); err == nil || len(w.Header()) > 0 {
		t.Errorf("error %v, headers %v", err, w.Header())
	}
}
