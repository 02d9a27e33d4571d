package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
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

// misfit refuses a tap for which the server would end the connection, and with it everything
// else that it carries. The caller holds mu.
func (k *Conn) misfit(t *Tap, raw []byte) error {
	p := api.Problem{Status: http.StatusBadRequest, Reason: dibs.InvalidRequest.String()}
	invisible := func(r rune) bool { return r < '!' || r > '~' }
	switch {
	case len(t.Key) > dibs.MaxKeyLen || strings.ContainsFunc(t.Key, invisible):
		p.Detail = fmt.Sprintf("a key over a connection must be at most %d visible ASCII characters", dibs.MaxKeyLen)
		p.Errors = []api.ProblemFault{{Pointer: "/key", Detail: p.Detail}}
	case k.most > 0 && len(raw) > k.most:
		p.Status, p.Reason = http.StatusRequestEntityTooLarge, dibs.TooLarge.String()
		p.Detail = fmt.Sprintf("the claim takes %d bytes as a message, and the server takes %d", len(raw), k.most)
	default:
		return nil
	}
	return &Error{Problem: problemIn(&p)}
}
