package gateway_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
)

// unfinished is the length of a body that lacks its last byte, the longest that a user may send.
const unfinished = 16<<10 - 1

// readers serves a handler and counts what it has read of bodies.
type readers struct {
	next http.Handler
	read atomic.Int64
}

func (s *readers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > 0 {
		r.Body = countedBody{r.Body, &s.read}
	}
	s.next.ServeHTTP(w, r)
}

type countedBody struct {
	io.ReadCloser
	read *atomic.Int64
}

func (b countedBody) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	b.read.Add(int64(n))
	return n, err
}

// awaitBytes waits until n bytes of bodies have been read.
func (s *readers) awaitBytes(t *testing.T, n int64) {
	t.Helper()
	for until := time.Now().Add(patience); s.read.Load() < n; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("%d bytes of %d have been read", s.read.Load(), n)
		}
	}
}

// TestMemoryOfBodies: what the body of a request takes that lacks its last byte is bounded, of each connection over
// HTTP/1.1, and of all streams together that a connection over HTTP/2 may have open.
func TestMemoryOfBodies(t *testing.T) {
	r := start(t, gateway.Config{})
	id := r.sale(5)
	for _, c := range []struct {
		what        string
		over2       bool
		conns       int64
		least, most int64
	}{
		{"a body that lacks its last byte, over HTTP/1.1", false, 300, unfinished, 64 << 10},
		{"a body that lacks its last byte on all 64 streams of HTTP/2", true, 20, 64 * unfinished, 64 * 64 << 10},
	} {
		handler := &readers{next: r.handler}
		server := httptest.NewUnstartedServer(handler)
		server.Config, server.EnableHTTP2 = httpapi.NewServer("", handler), true
		open, each := func() net.Conn { return openBody(t, server, id) }, int64(1)
		if c.over2 {
			server.StartTLS()
			open = func() net.Conn {
				conn, streams := openBodies(t, server, id)
				each = streams
				return conn
			}
		} else {
			server.Start()
		}
		// The first one makes what all share.
		all := []net.Conn{open()}
		handler.awaitBytes(t, each*unfinished)
		before := inUse()
		for range c.conns {
			all = append(all, open())
		}
		handler.awaitBytes(t, (c.conns+1)*each*unfinished)
		per := (inUse() - before) / c.conns
		t.Logf("%s: %d bytes a connection, %d a request, with the client's end", c.what, per, per/each)
		if per < c.least || per > c.most {
			t.Errorf("%s takes %d bytes", c.what, per)
		}
		for _, conn := range all {
			must(t, conn.Close())
		}
		server.Close()
	}
}

// openBody sends a claim but for the last byte of its body.
func openBody(t *testing.T, server *httptest.Server, campaign string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	must(t, err)
	_, err = fmt.Fprintf(conn, "POST /v1/campaigns/%s/claims HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer dev_42\r\nContent-Length: %d\r\n\r\n%s",
		campaign, unfinished+1, bytes.Repeat([]byte(" "), unfinished))
	must(t, err)
	return conn
}

// The frames of HTTP/2 (RFC 9113) that the tests write and read.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameSettings     = 0x4
	frameWindowUpdate = 0x8
	flagEndHeaders    = 0x4
	settingMaxStreams = 0x3
)

// openBodies opens a connection over HTTP/2, and on every stream that it may have sends a claim but for the last byte of
// its body. It returns how many streams that are.
func openBodies(t *testing.T, server *httptest.Server, campaign string) (conn net.Conn, streams int64) {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	must(t, err)
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(frameSettings, 0, 0, nil))
	must(t, err)
	w := &window{t: t, conn: conn, left: 65535, most: make(chan int64, 1)}
	w.grew.L = &w.mu
	go w.read()
	streams = <-w.most
	headers := []byte(nil)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", "/v1/campaigns/" + campaign + "/claims"}, {":authority", "x"},
		{"authorization", "Bearer dev_42"}, {"content-length", fmt.Sprint(unfinished + 1)},
	} {
		// A literal that is not indexed, without Huffman's code (RFC 7541).
		headers = append(headers, 0, byte(len(h[0])))
		headers = append(append(append(headers, h[0]...), byte(len(h[1]))), h[1]...)
	}
	for i := range streams {
		id := uint32(2*i + 1)
		w.take(unfinished)
		_, err = io.WriteString(conn, frame(frameHeaders, flagEndHeaders, id, headers)+frame(frameData, 0, id, bytes.Repeat([]byte(" "), unfinished)))
		must(t, err)
	}
	return conn, streams
}

// frame is a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return string(append(binary.BigEndian.AppendUint32(append(head, flags), stream), payload...))
}

// window is what a connection over HTTP/2 may still send, and what the server lets it open. mu guards left.
type window struct {
	t    *testing.T
	conn net.Conn
	mu   sync.Mutex
	grew sync.Cond
	left int64
	most chan int64
}

// grow lets n bytes more be sent.
func (w *window) grow(n int64) {
	w.mu.Lock()
	w.left += n
	w.mu.Unlock()
	w.grew.Broadcast()
}

// take waits until n bytes may be sent.
func (w *window) take(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.left < n {
		w.grew.Wait()
	}
	w.left -= n
}

// read reads the server's frames until the connection is closed.
func (w *window) read() {
	// Who waits then sees that the connection is closed.
	defer w.grow(math.MaxInt64 / 2)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(w.conn, head); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(head)>>8)
		if _, err := io.ReadFull(w.conn, payload); err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(head[5:])
		switch {
		case head[3] == frameSettings:
			for ; len(payload) >= 6; payload = payload[6:] {
				if binary.BigEndian.Uint16(payload) == settingMaxStreams {
					w.most <- int64(binary.BigEndian.Uint32(payload[2:]))
				}
			}
		case head[3] == frameWindowUpdate && stream == 0:
			w.grow(int64(binary.BigEndian.Uint32(payload)))
		case head[3] == frameData || head[3] == frameHeaders:
			w.t.Errorf("stream %d was answered", stream)
		}
	}
}
