package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Nothing is sent before there is enough for a part, and the headers only once.
func TestDelayedWriter(t *testing.T) {
	w := httptest.NewRecorder()
	to, begun := &Recorder{ResponseWriter: w}, 0
	d := &DelayedWriter{To: to, Begin: func(h http.Header) { begun++; h.Set("Content-Type", "text/plain") }}
	write := func(n int) {
		t.Helper()
		if wrote, err := d.Write([]byte(strings.Repeat("x", n))); err != nil || wrote != n {
			t.Fatalf("%d, %v", wrote, err)
		}
	}
	write(delayedBuffer - 1)
	if to.Status != 0 || w.Body.Len() != 0 || begun != 0 {
		t.Fatalf("status %d after %d bytes, begun %d times", to.Status, w.Body.Len(), begun)
	}
	write(1)
	write(10)
	if to.Status != http.StatusOK || w.Body.Len() != delayedBuffer {
		t.Errorf("status %d after %d bytes", to.Status, w.Body.Len())
	}
	if err := d.Flush(); err != nil || w.Body.Len() != delayedBuffer+10 || begun != 1 || w.Header().Get("Content-Type") != "text/plain" {
		t.Errorf("%v: %d bytes, begun %d times, %v", err, w.Body.Len(), begun, w.Header())
	}
}

// An answer without a body has its headers too.
func TestDelayedWriterOfNothing(t *testing.T) {
	w := httptest.NewRecorder()
	d := &DelayedWriter{To: &Recorder{ResponseWriter: w}, Begin: func(h http.Header) { h.Set("ETag", `"e"`) }}
	if err := d.Flush(); err != nil || w.Code != http.StatusOK || w.Header().Get("ETag") != `"e"` {
		t.Errorf("%v: %d %v", err, w.Code, w.Header())
	}
}
