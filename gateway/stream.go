package gateway

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/internal/web"
)

// stream is one client of server-sent events.
// mu guards what stands below it. wake has room for one signal, which stands for all
// that came since the pump looked. gone is set once.
type stream struct {
	wake chan struct{}

	mu    sync.Mutex
	bye   []byte // the last message, once the stream is to end
	gone  bool
	sent  time.Time
	every time.Duration
	quiet bool // a sign of life is due
}

// frame is a message as an event of a stream.
func frame(id, event string, raw []byte) []byte {
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + event + "\ndata: ")
	b.Write(raw)
	b.WriteString("\n\n")
	return b.Bytes()
}

func (s *stream) nudge() { wait.Kick(s.wake) }

// leave ends the stream with a last message, nil for none.
func (s *stream) leave(bye []byte) {
	s.mu.Lock()
	s.bye, s.gone = bye, true
	s.mu.Unlock()
	s.nudge()
}

// look has a sign of life sent on a stream that was silent for long.
func (s *stream) look(now time.Time) {
	s.mu.Lock()
	due := now.Sub(s.sent) > s.every
	s.quiet = s.quiet || due
	s.mu.Unlock()
	if due {
		s.nudge()
	}
}

// firstRetry is what clients are told to wait before they connect again.
const firstRetry = time.Second

// Events streams where a campaign stands, as server-sent events, until the
// client goes, or the hub leaves. last is the client's Last-Event-ID: what it has
// seen, and what is older, is not sent again. An error is one that the caller
// answers, nothing was sent then.
func (h *Hub) Events(w http.ResponseWriter, r *http.Request, campaign, last string, v dibs.Visitor) error {
	after, ok := dibs.ParseMark(last)
	if !ok {
		// It is somebody else's id, or none: the stream begins with what is.
		after = dibs.Mark{Version: -1}
	}
	if !dibs.IsID(campaign) {
		return dibs.NoSuchCampaign
	}
	if err := h.enter(v.Address); err != nil {
		return err
	}
	defer h.exit(v.Address)
	t, err := h.follow(campaign)
	if err != nil {
		return err
	}
	defer h.leave(t)
	s := &stream{wake: make(chan struct{}, 1), sent: h.cfg.Now(), every: h.cfg.Heartbeat}
	h.mu.Lock()
	h.streams[s] = struct{}{}
	leaving := h.leaving
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.streams, s)
		h.mu.Unlock()
	}()
	if leaving {
		return errLeaving
	}
	t.add(s)
	defer t.remove(s)
	h.numbers.opened.Add(1)
	out, err := web.NewEventStream(w, h.cfg.WriteWithin)
	if err != nil {
		return err
	}
	h.pump(r, s, t, after, out)
	return nil
}

// pump writes what there is until the stream ends.
// The news is read after the flags: a signal that comes in between is still in wake.
func (h *Hub) pump(r *http.Request, s *stream, t *topic, after dibs.Mark, out *web.EventStream) {
	err := out.Send([]byte("retry: " + strconv.FormatInt(firstRetry.Milliseconds(), 10) + "\n\n"))
	sent := uint64(0)
	for err == nil {
		s.mu.Lock()
		gone, bye, quiet := s.gone, s.bye, s.quiet
		s.quiet, s.sent = false, h.cfg.Now()
		s.mu.Unlock()
		switch n := t.latest.Load(); {
		case gone:
			if bye != nil {
				// Clients that come back do not all come at once.
				_ = out.Send(append([]byte("retry: "+strconv.FormatInt(spread(h.cfg.DrainWithin).Milliseconds(), 10)+"\n"), frame("", typeGoAway, bye)...))
			}
			return
		case n.seq != sent:
			sent = n.seq
			if n.mark.Compare(after) > 0 {
				err = out.Send(n.sse)
			}
			continue
		case quiet:
			if err = out.Send([]byte(": still here\n\n")); err != nil {
				continue
			}
		}
		select {
		case <-s.wake:
		case <-r.Context().Done():
			return
		}
	}
	if isTimeout(err) {
		h.numbers.cutSlow.Add(1)
	}
}
