package client

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// sound gives a connection up of which nothing was heard for two heartbeats of the server: a
// network that drops it in silence would leave claims without an answer for minutes. The server
// asks for a sign of life after each heartbeat. The zero sound gives nothing up.
//
// mu guards the timer.
type sound struct {
	mu    sync.Mutex
	timer *time.Timer
	quiet time.Duration
}

// listen begins to watch a connection whose server asks after each heartbeat; one of 0 or less
// is not watched.
func (s *sound) listen(ws *websocket.Conn, heartbeat time.Duration) {
	if heartbeat <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = 2 * heartbeat
	s.timer = time.AfterFunc(s.quiet, func() { _ = ws.CloseNow() })
}

func (s *sound) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(s.quiet)
	}
}

// ping is called when the server asks; it is answered.
func (s *sound) ping(context.Context, []byte) bool {
	s.heard()
	return true
}

func (s *sound) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
