package gateway_test

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
)

// unfinished is the length of a body that lacks its last byte, the longest that a user may send.
const unfinished = 16<<10 - 1

// bodyPatience bounds what a connection of the test waits for: longer than all of the test takes, shorter than a hang.
const bodyPatience = 2 * time.Minute

// readers serves a handler and counts what it has read of bodies. mu guards the fields below it; reached is nil while nobody
// waits, and closed when want bytes have been read.
type readers struct {
	next http.Handler

	mu         sync.Mutex
	read, want int64
	reached    chan struct{}
}

func (s *readers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > 0 {
		r.Body = countedBody{r.Body, s}
	}
	s.next.ServeHTTP(w, r)
}

// count counts n bytes more.
func (s *readers) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read += int64(n); s.reached != nil && s.read >= s.want {
		close(s.reached)
		s.reached = nil
	}
}

type countedBody struct {
	io.ReadCloser
	in *readers
}

func (b countedBody) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	b.in.count(n)
	return n, err
}

// awaitBytes waits until n bytes of bodies have been read.
func (s *readers) awaitBytes(t *testing.T, n int64) {
	t.Helper()
	reached := make(chan struct{})
	s.mu.Lock()
	s.want, s.reached = n, reached
	s.mu.Unlock()
	s.count(0)
	select {
	case <-reached:
	case <-time.After(patience):
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Fatalf("%d bytes of %d have been read", s.read, n)
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
		open, each := func() io.Closer { return openBody(t, server, id) }, int64(1)
		if c.over2 {
			server.StartTLS()
			open = func() io.Closer {
				w := openBodies(t, server, id)
				each = w.streams
				return w
			}
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		// The first one makes what all share.
		all := []io.Closer{open()}
		handler.awaitBytes(t, each*unfinished)
		before := inUse()
		for range c.conns {
			all = append(all, open())
		}
		handler.awaitBytes(t, (c.conns+1)*each*unfinished)
		per := (inUse() - before) / c.conns
		t.Logf("%s: %d bytes a connection, %d a request, with the client's end", c.what, per, per/each)
		if raceEnabled {
			// The race detector keeps records of its own of what is in use.
			c.most *= 2
		}
		if per < c.least || per > c.most {
			t.Errorf("%s takes %d bytes", c.what, per)
		}
		for _, conn := range all {
			must(t, conn.Close())
		}
	}
}

// openBody sends a claim but for the last byte of its body.
func openBody(t *testing.T, server *httptest.Server, campaign string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(bodyPatience)))
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
// its body.
func openBodies(t *testing.T, server *httptest.Server, campaign string) *window {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	must(t, err)
	w := &window{conn: conn, left: 65535, told: make(chan int64, 1), ended: make(chan struct{})}
	w.grew.L = &w.mu
	go w.read()
	t.Cleanup(func() { _ = w.Close() })
	must(t, conn.SetDeadline(time.Now().Add(bodyPatience)))
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(frameSettings, 0, 0, nil))
	must(t, err)
	select {
	case w.streams = <-w.told:
	case <-w.ended:
		t.Fatal("the server does not say how many streams it takes")
	}
	headers := []byte(nil)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", "/v1/campaigns/" + campaign + "/claims"}, {":authority", "x"},
		{"authorization", "Bearer dev_42"}, {"content-length", fmt.Sprint(unfinished + 1)},
	} {
		// A literal that is not indexed, without Huffman's code (RFC 7541).
		headers = append(headers, 0, byte(len(h[0])))
		headers = append(append(append(headers, h[0]...), byte(len(h[1]))), h[1]...)
	}
	for i := range w.streams {
		id := uint32(2*i + 1)
		w.take(unfinished)
		_, err = io.WriteString(conn, frame(frameHeaders, flagEndHeaders, id, headers)+frame(frameData, 0, id, bytes.Repeat([]byte(" "), unfinished)))
		must(t, err)
	}
	return w
}

// frame is a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return string(append(binary.BigEndian.AppendUint32(append(head, flags), stream), payload...))
}

// window is a connection over HTTP/2: what it may still send, and how many streams the server takes on it. read runs until
// the connection is closed, and then closes ended. mu guards left and answered, the first stream that the server answered.
type window struct {
	conn     net.Conn
	streams  int64
	told     chan int64
	ended    chan struct{}
	mu       sync.Mutex
	grew     sync.Cond
	left     int64
	answered uint32
}

// Close closes the connection and returns an error when the server has answered. It may be called again.
func (w *window) Close() error {
	// The error of a connection that was closed before is of no interest.
	_ = w.conn.Close()
	<-w.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered != 0 {
		return fmt.Errorf("stream %d was answered", w.answered)
	}
	return nil
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

// tell notes how many streams the server takes; the first time counts.
func (w *window) tell(streams int64) {
	select {
	case w.told <- streams:
	default:
	}
}

// read reads the server's frames until the connection is closed.
func (w *window) read() {
	defer close(w.ended)
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
					w.tell(int64(binary.BigEndian.Uint32(payload[2:])))
				}
			}
		case head[3] == frameWindowUpdate && stream == 0:
			w.grow(int64(binary.BigEndian.Uint32(payload)))
		case head[3] == frameData || head[3] == frameHeaders:
			w.mu.Lock()
			w.answered = cmp.Or(w.answered, stream)
			w.mu.Unlock()
		}
	}
}
