package gateway

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/tokens"
)

// The sizes of a connection's buffers. Longer messages pass them by.
const (
	readBuffer  = 512
	writeBuffer = 1024
)

var (
	// A caller may try another node at once: nothing was done.
	errFull        = faults.Busy(5*time.Second, dibs.Text{EN: "this node has reached its limit of connections", ZH: "该节点连接数已满"})
	errAddressFull = &dibs.Error{
		Reason: dibs.RateLimited, RetryAfter: 30 * time.Second,
		Detail: dibs.Text{EN: "your address has reached its limit of connections", ZH: "您所在地址的连接数已达上限"},
	}
	errLeaving = &dibs.Error{
		Reason: dibs.Unavailable, Effect: dibs.EffectNone, RetryAfter: time.Second,
		Detail: dibs.Text{EN: "this node is stopping: connect again, to another one", ZH: "该节点正在停止，请重新连接到其他节点"},
	}
	// errLeavingTap answers a claim: one sent again may have been granted before.
	errLeavingTap = &dibs.Error{
		Reason: dibs.Unavailable, Effect: dibs.EffectUnknown, RetryAfter: time.Second, Detail: errLeaving.Detail,
	}
	errNoUpgrade = dibs.Fail(dibs.InvalidRequest, dibs.Text{
		EN: "this address speaks WebSocket, version 13, over HTTP/1.1: ask for an upgrade", ZH: "该地址使用 WebSocket（版本 13，HTTP/1.1），请发送升级请求",
	})
	errTokenInURL = dibs.Fail(dibs.InvalidRequest, dibs.Text{
		EN: "do not put tokens into addresses, which logs keep: send the token in the first message, or use a ticket of POST /v1/ws-tickets",
		ZH: "令牌不得出现在地址中：请在第一条消息中发送令牌，或使用 POST /v1/ws-tickets 获取票据",
	})
)

// Check returns what a valid token says. Its errors are shown to the client.
type Check = func(ctx context.Context, token string) (tokens.Token, error)

// WebSocket makes a WebSocket of a request and returns; the hub serves it. An
// error is one that the caller answers, nothing was sent then.
// The order of the steps matters: the connection is counted before the ticket is
// taken, so that a full node uses no ticket up, and the ticket is taken before the
// upgrade, so that a bad one is answered with a status.
func (h *Hub) WebSocket(w http.ResponseWriter, r *http.Request, check Check, v dibs.Visitor) error {
	if !isUpgrade(r) {
		return errNoUpgrade
	}
	query := r.URL.Query()
	for _, name := range []string{"token", "access_token", "jwt"} {
		if query.Has(name) {
			return errTokenInURL
		}
	}
	if err := h.enter(v.Address); err != nil {
		return err
	}
	entered := true
	defer func() {
		if entered {
			h.exit(v.Address)
		}
	}()
	c := &conn{hub: h, check: check, epoch: h.cfg.Epoch(), zh: v.Chinese, requestID: v.RequestID, address: v.Address, bornAt: h.cfg.Now().UnixMilli()}
	c.seen.Store(c.bornAt)
	if ticket := query.Get("ticket"); ticket != "" {
		is, err := h.redeem(r.Context(), ticket)
		if err != nil {
			return err
		}
		c.setUser(is)
	}
	taken := &thin{ResponseWriter: w, within: h.cfg.WriteWithin}
	ws, err := websocket.Accept(taken, r, &websocket.AcceptOptions{
		// A page of another origin can do nothing: a connection is nobody's before
		// its token or ticket, and no cookie counts.
		InsecureSkipVerify: true,
		OnPongReceived:     func(context.Context, []byte) { c.heard() },
		OnPingReceived:     func(context.Context, []byte) bool { c.heard(); return true },
	})
	if err != nil {
		// The library has answered it.
		h.cfg.Logger.Debug("a WebSocket was not made", "request_id", v.RequestID, "err", err)
		return nil
	}
	entered = false
	c.ws, c.raw = ws, taken.raw
	h.serve(c)
	return nil
}

// isUpgrade reports whether a request asks for a WebSocket that can be made.
func isUpgrade(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor >= 1 && len(r.Header["Sec-Websocket-Key"]) == 1 &&
		r.Header.Get("Sec-Websocket-Version") == "13"
}

// thin hands a connection over with small buffers in place of the server's,
// which then are nobody's any more.
// raw is set by Hijack, which the library calls once.
type thin struct {
	http.ResponseWriter
	within time.Duration
	raw    net.Conn
}

// Hijack takes the connection over.
func (t *thin) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	raw, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.raw = raw
	c := &timedConn{Conn: raw, within: t.within}
	if n := rw.Reader.Buffered(); n > 0 {
		early, err := rw.Peek(n)
		if err != nil {
			return nil, nil, err
		}
		c.early = append(c.early, early...)
	}
	return c, bufio.NewReadWriter(bufio.NewReaderSize(c, readBuffer), bufio.NewWriterSize(c, writeBuffer)), nil
}

// timedConn bounds each write, without a timer of its own.
// Reads are one goroutine's, and early is theirs. A deadline is set for each write,
// so that a reader that takes nothing is noticed within the time.
type timedConn struct {
	net.Conn
	within time.Duration
	// early is what had arrived before the connection was taken over.
	early []byte
}

// Read reads what had arrived early first.
func (c *timedConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		if c.early = c.early[n:]; len(c.early) == 0 {
			c.early = nil
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write writes within the time.
func (c *timedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.within)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
