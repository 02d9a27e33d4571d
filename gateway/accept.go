package gateway

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
)

// The sizes of a connection's buffers. Longer messages pass them by.
const (
	readBuffer  = 512
	writeBuffer = 1024
)

var (
	errFull = &dibs.Error{
		Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: 5 * time.Second,
		Detail: dibs.Text{EN: "this node has reached its limit of connections", ZH: "该节点连接数已满"},
	}
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

// Check returns the user of a token and when it stops to be valid, zero for no
// end. Its errors are shown to the client.
type Check = func(ctx context.Context, token string) (user string, until time.Time, err error)

// WebSocket makes a WebSocket of a request and returns; the hub serves it. An
// error is one that the caller answers, nothing was sent then.
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
	network := networkOf(v.Address)
	if err := h.enter(network); err != nil {
		return err
	}
	entered := true
	defer func() {
		if entered {
			h.exit(network)
		}
	}()
	c := &conn{hub: h, check: check, network: network, epoch: h.cfg.Epoch(), zh: v.Chinese, requestID: v.RequestID, address: v.Address, bornAt: h.cfg.Now().UnixMilli()}
	c.seen.Store(c.bornAt)
	if ticket := query.Get("ticket"); ticket != "" {
		user, until, err := h.redeem(r.Context(), ticket)
		if err != nil {
			return err
		}
		c.setUser(user, until)
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

// networkOf is what counts as one address: a /64 of IPv6. It is not valid for this
// machine itself, and where the address is not known.
func networkOf(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	if !address.IsValid() || address.IsLoopback() {
		return netip.Prefix{}
	}
	bits := 32
	if address.Is6() {
		bits = 64
	}
	// An address has so many bits.
	p, _ := address.Prefix(bits)
	return p
}

// isUpgrade reports whether a request asks for a WebSocket that can be made.
func isUpgrade(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor >= 1 && len(r.Header["Sec-Websocket-Key"]) == 1 &&
		r.Header.Get("Sec-Websocket-Version") == "13"
}

// thin hands a connection over with small buffers in place of the server's,
// which then are nobody's any more.
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
