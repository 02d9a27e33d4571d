package web

import (
	"net/http"
	"time"
)

// TypeEvents is the content type of server-sent events.
var TypeEvents = []string{"text/event-stream"}

// EventStream sends server-sent events at once, each within a time.
type EventStream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	within time.Duration
}

// NewEventStream makes the answer w a stream of events. Nothing is sent yet: after an
// error there may still be another answer.
func NewEventStream(w http.ResponseWriter, within time.Duration) (*EventStream, error) {
	s := &EventStream{w, http.NewResponseController(w), within}
	// The server's deadline for reading a request would end the stream.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = TypeEvents, NoStore
	// A proxy that gathers answers would keep events back.
	h["X-Accel-Buffering"] = []string{"no"}
	return s, nil
}

// Send sends frames, and takes their deadline away: over HTTP/2 one that passes ends the
// stream, though nothing is being written.
func (s *EventStream) Send(frames []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.within)); err != nil {
		return err
	}
	if _, err := s.w.Write(frames); err != nil {
		return err
	}
	if err := s.rc.Flush(); err != nil {
		return err
	}
	return s.rc.SetWriteDeadline(time.Time{})
}
