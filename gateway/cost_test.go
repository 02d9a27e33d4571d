package gateway_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/gateway"
)

// inUse is what heap and stacks take after collections, in bytes: the first two empty the pools that earlier tests have
// filled (sync.Pool), and the third one frees what was in them.
func inUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapInuse + s.StackInuse)
}

// opened opens a connection, sends text, and returns when an answer has begun with want.
func (r *rig) opened(text, want string) net.Conn {
	r.Helper()
	conn, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	must(r, err)
	r.Cleanup(func() { _ = conn.Close() })
	must(r, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write([]byte(text))
	must(r, err)
	answer, part := []byte(nil), make([]byte, 256)
	for !bytes.Contains(answer, []byte("\r\n\r\n")) {
		n, err := conn.Read(part)
		must(r, err)
		answer = append(answer, part[:n]...)
	}
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 "+want)) {
		r.Fatalf("%s", answer)
	}
	return conn
}

// TestMemoryOfConnections: what a connection takes of an attacker who opens it and says no
// more is bounded; the numbers of WebSockets and streams are bounded for each address.
func TestMemoryOfConnections(t *testing.T) {
	const conns, most = 300, 64 << 10
	r := start(t, gateway.Config{AuthWithin: time.Minute})
	id := r.sale(5)
	for _, c := range []struct{ what, text, want string }{
		{"a connection that waits after an answer", "GET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n", "200"},
		{"a WebSocket without a token", "GET /v1/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", "101"},
		{"an event stream that is not read", "GET /v1/campaigns/" + id + "/events HTTP/1.1\r\nHost: x\r\n\r\n", "200"},
	} {
		// The first one makes what all share.
		r.opened(c.text, c.want)
		before, all := inUse(), make([]net.Conn, conns)
		for i := range all {
			all[i] = r.opened(c.text, c.want)
		}
		per := (inUse() - before) / conns
		t.Logf("%s: %d bytes, with the client's end", c.what, per)
		if per < 1<<10 || per > most {
			t.Errorf("%s takes %d bytes", c.what, per)
		}
		runtime.KeepAlive(all)
	}
}

// TestMemoryOfTickets: the tickets that wait to be used are bounded, and so is each.
func TestMemoryOfTickets(t *testing.T) {
	const tickets, most = 100_000, 512
	m := gateway.NewMemoryTickets(nil)
	before := inUse()
	for i := range tickets {
		must(t, m.Put(t.Context(), rand.Text()+"-"+strconv.FormatInt(time.Now().UnixMilli(), 36), fmt.Sprintf("%d user-%07d %d %s", time.Now().Unix(), i, time.Now().Unix(), rand.Text()), time.Minute))
	}
	per := (inUse() - before) / tickets
	t.Logf("a ticket of a WebSocket: %d bytes", per)
	if per < 50 || per > most {
		t.Errorf("a ticket takes %d bytes", per)
	}
	if err := m.Put(t.Context(), "one more", "", time.Minute); err == nil {
		t.Errorf("more than %d tickets wait", tickets)
	}
	runtime.KeepAlive(m)
}
