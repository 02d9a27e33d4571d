package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/tokens"
)

// conn is one WebSocket. Its reader is a goroutine of its own; its writer is
// one that lives while there is something to send.
//
// mu guards what stands below it. A goroutine that needs the hub's mutex too takes the
// hub's first, as forget does. At most one writer runs; writing says that it does. inFlight
// and queue change together, so that a connection which ends in order has sent the
// answers of its claims. closed is set once; from then on nothing is queued, and subs
// is empty.
type conn struct {
	hub       *Hub
	ws        *websocket.Conn
	raw       net.Conn
	check     Check
	requestID string
	address   netip.Addr
	zh        bool
	bornAt    int64
	// seen is when something was heard last, in milliseconds since 1970; asked is
	// set while a sign of life is being waited for.
	seen  atomic.Int64
	asked atomic.Bool

	// fullAt and strikes are the reader's; see overRate.
	fullAt  int64
	strikes int

	mu sync.Mutex
	// is what the token says by which the connection is a user's; no user without one.
	is tokens.Token
	// token is that token, empty where a ticket stood for it, and epoch the one in which it
	// was good.
	token string
	epoch uint64
	// queue are messages to this connection alone, subs what it follows, and
	// inFlight the claims under way.
	queue    [][]byte
	subs     []*sub
	inFlight []tap
	writing  bool
	ending   *closing
	closed   bool
}

// tap names a claim of a connection.
type tap struct{ id, campaign string }

// sub is one campaign that a connection follows.
type sub struct {
	topic *topic
	// sent is the seq of the news that was sent last, after the mark of what the
	// client has.
	sent  uint64
	after dibs.Mark
	// place is what was told of the waiting room last, at placeAt; the hub's tick's.
	place   gate.PlaceView
	placeAt time.Time
}

// closing is how a connection ends. now says that it does not wait for claims
// that are under way.
type closing struct {
	code   websocket.StatusCode
	reason string
	now    bool
}

func (c *conn) heard() { c.seen.Store(c.hub.cfg.Now().UnixMilli()) }

func (c *conn) who() tokens.Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.is
}

// void says why the connection's token is good no more; no text for one that is good.
func (c *conn) void(is *tokens.Token, now time.Time) (why dibs.Text) {
	switch {
	case !is.Until.IsZero() && !now.Before(is.Until):
		return tokenEnded
	case c.hub.cfg.Revoked != nil && is.User != "" && c.hub.cfg.Revoked(is.User, is.ID, is.Issued):
		return tokenRevoked
	}
	return why
}

func (c *conn) setUser(is tokens.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is = is
}

// setToken notes the token by which the connection is a user's, and the epoch
// from before it was checked.
func (c *conn) setToken(token string, is tokens.Token, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is, c.token, c.epoch = is, token, epoch
}

// nudge has the writer look for what is to be sent.
func (c *conn) nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startLocked()
}

// The caller holds mu.
func (c *conn) startLocked() {
	if !c.writing && !c.closed {
		c.writing = true
		c.hub.running.Go(c.write)
	}
}

// send queues a message. A client that lets too many of them wait is cut.
func (c *conn) send(raw []byte) {
	c.mu.Lock()
	queued := c.queueLocked(raw)
	c.mu.Unlock()
	if !queued {
		c.cutSlow()
	}
}

// finish queues the answer of a claim, which is no longer under way. It does
// both at once: a connection that ends does so after the answers of its claims.
func (c *conn) finish(m *claimMessage, answer []byte) {
	c.mu.Lock()
	c.inFlight = slices.DeleteFunc(c.inFlight, func(t tap) bool { return t == m.tap() })
	queued := c.queueLocked(answer)
	c.mu.Unlock()
	if !queued {
		c.cutSlow()
	}
}

// queueLocked queues a message, unless too many wait. A closed connection takes and
// forgets it.
func (c *conn) queueLocked(raw []byte) bool {
	if c.closed {
		return true
	}
	if len(c.queue) >= c.hub.cfg.MaxQueued {
		return false
	}
	c.queue = append(c.queue, raw)
	c.startLocked()
	return true
}

// cutSlow cuts a connection that does not read.
func (c *conn) cutSlow() {
	c.hub.numbers.cutSlow.Add(1)
	c.drop()
}

// end closes the connection once what is queued is sent.
// The first reason counts. A connection that is dropped meanwhile sends none.
func (c *conn) end(how closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == nil {
		c.ending = &how
	}
	c.startLocked()
}

// next returns what is to be sent, or how to end, or neither: then the writer is
// no more.
// Messages of the connection's own come before news of campaigns: only the former may
// fill the queue.
func (c *conn) next() (raw []byte, end *closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.writing = false
		return nil, nil
	}
	if len(c.queue) > 0 {
		raw = c.queue[0]
		if c.queue = c.queue[1:]; len(c.queue) == 0 {
			c.queue = nil
		}
		return raw, nil
	}
	if c.ending != nil && (c.ending.now || len(c.inFlight) == 0) {
		return nil, c.ending
	}
	for _, s := range c.subs {
		n := s.topic.latest.Load()
		if n.seq == s.sent {
			continue
		}
		s.sent = n.seq
		// The client has what its mark names, and everything before.
		if n.mark.Compare(s.after) > 0 {
			return n.raw, nil
		}
	}
	c.writing = false
	return nil, nil
}

// write sends until nothing is left.
func (c *conn) write() {
	for {
		raw, end := c.next()
		switch {
		case end != nil:
			// It waits for the client's answer, a few seconds.
			if err := c.ws.Close(end.code, end.reason); err != nil {
				c.hub.cfg.Logger.Debug("a WebSocket was not closed in order", "request_id", c.requestID, "err", err)
			}
			c.drop()
			return
		case raw == nil:
			return
		}
		// The connection bounds its writes by itself.
		if err := c.ws.Write(context.Background(), websocket.MessageText, raw); err != nil {
			c.mu.Lock()
			slow := !c.closed
			c.mu.Unlock()
			if slow && isTimeout(err) {
				c.hub.numbers.cutSlow.Add(1)
			}
			c.drop()
			return
		}
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// drop closes the connection without ceremony, once.
// No lock is held while topics and hub are told, since they lock themselves.
func (c *conn) drop() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	subs := c.subs
	c.subs, c.queue = nil, nil
	c.mu.Unlock()
	for _, s := range subs {
		s.topic.remove(c)
		c.hub.leave(s.topic)
	}
	// A close that waits for its answer waits no more. It is gone, however that is put.
	_ = c.raw.Close()
	_ = c.ws.CloseNow()
	c.hub.forget(c)
}

// buffers are for messages while they are read.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// read takes messages until the connection or its patience ends.
func (c *conn) read() {
	// A longer message is not even read to its end.
	c.ws.SetReadLimit(int64(c.hub.cfg.MaxMessage) + 1)
	for {
		kind, r, err := c.ws.Reader(context.Background())
		if err != nil {
			c.drop()
			return
		}
		c.heard()
		f := c.take(kind, r)
		if f != nil {
			c.fail(f)
			return
		}
		c.mu.Lock()
		over := c.closed
		c.mu.Unlock()
		if over {
			return
		}
	}
}

var errBinary = dibs.Text{EN: "messages are JSON in text frames", ZH: "消息必须是文本帧中的 JSON"}

// take reads one message and acts on it.
// A fault ends the connection. A message above the rate is parsed before it is
// refused, so that the refusal has its id.
func (c *conn) take(kind websocket.MessageType, r io.Reader) *fault {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	raw, err := readUpTo(r, (*buf)[:0], c.hub.cfg.MaxMessage)
	*buf = raw[:0]
	switch {
	case errors.Is(err, errTooLong):
		return &fault{
			code: websocket.StatusMessageTooBig, reason: dibs.TooLarge,
			detail: dibs.Textf("a message has at most %d bytes", "消息最多 %d 字节", c.hub.cfg.MaxMessage),
		}
	case err != nil:
		// The connection broke; the next read says so, too.
		return nil
	case kind != websocket.MessageText:
		return &fault{code: websocket.StatusUnsupportedData, reason: dibs.InvalidRequest, detail: errBinary}
	}
	m, f := parse(raw)
	if f != nil {
		return f
	}
	if wait := c.overRate(); wait > 0 {
		return c.tooFast(m, wait)
	}
	return c.act(m)
}

var errTooLong = errors.New("gateway: the message is too long")

// readUpTo appends what r has to b, most bytes of it at most.
func readUpTo(r io.Reader, b []byte, most int) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, min(cap(b)+512, most+1))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > most || errors.Is(err, websocket.ErrMessageTooBig):
			return b, errTooLong
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

// fail tells why a message is not taken, and ends the connection.
func (c *conn) fail(f *fault) {
	c.hub.numbers.faults.Add(1)
	p := web.ProblemOf(dibs.Fail(f.reason, f.detail))
	r := c.refusalOf(&p)
	r.Retryable = r.Retryable || f.again
	c.send(c.hub.encode(failure{Type: typeError, ID: f.id, refusal: r}))
	c.end(closing{code: f.code, reason: closeReason(f.detail.EN), now: true})
}

// maxCloseReason is how long the reason of a close frame may be.
// RFC 6455 leaves 123 bytes beside the code.
const maxCloseReason = 120

func closeReason(s string) string {
	if len(s) > maxCloseReason {
		return s[:maxCloseReason]
	}
	return s
}

// refusalOf is what a message shows of a problem.
func (c *conn) refusalOf(p *web.Problem) refusal {
	v := p.View(c.zh, c.requestID)
	return refusal{Problem: &v, RetryAfterMS: p.RetryAfter.Milliseconds()}
}

// refuse tells that a message, about a campaign or "", was not taken.
func (c *conn) refuse(id, campaign string, err error) {
	p := web.ProblemOf(err)
	c.send(c.hub.encode(failure{Type: typeError, ID: id, CampaignID: campaign, refusal: c.refusalOf(&p)}))
}
