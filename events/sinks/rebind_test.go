package sinks

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/webhooks"
)

// lies is a name server that knows every name, by whatever address it is told.
func lies(t *testing.T, addresses func() []netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if _, err := conn.WriteTo(lie(buf[:n], addresses()), from); err != nil {
				return
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// lie answers a question of the name service with those addresses that are of
// the kind that is asked for.
func lie(question []byte, addresses []netip.Addr) []byte {
	// After the header of twelve bytes comes a name, in parts, then its kind.
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	answer := append([]byte(nil), question[:end+5]...)
	answer[2], answer[3] = 0x84, 0
	count := uint16(0)
	for _, a := range addresses {
		want := uint16(1)
		if a.Is6() {
			want = 28
		}
		if kind != want {
			continue
		}
		count++
		// The name is the one in the question; it may be forgotten at once.
		answer = append(answer, 0xc0, 12, byte(want>>8), byte(want), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
		answer = append(answer, a.AsSlice()...)
	}
	binary.BigEndian.PutUint16(answer[6:], count)
	binary.BigEndian.PutUint16(answer[8:], 0)
	binary.BigEndian.PutUint16(answer[10:], 0)
	return answer
}

// TestRebinding: wherever a name leads by the time that it is connected to, an
// address that is not of the public internet gets nothing.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer inside.Close()
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var addresses atomic.Pointer[[]netip.Addr]
	resolver := lies(t, func() []netip.Addr { return *addresses.Load() })
	try := func(private bool, host string, list ...string) answer {
		t.Helper()
		var all []netip.Addr
		for _, a := range list {
			all = append(all, netip.MustParseAddr(a))
		}
		addresses.Store(&all)
		p := newPoster(&WebhookConfig{AllowPrivate: private, Timeout: time.Minute})
		p.dialer.Resolver = resolver
		defer func() { _ = p.close() }()
		return p.post(t.Context(), &webhooks.WebhookEndpoint{ID: "e", URL: "http://" + net.JoinHostPort(host, port), Secret: "whsec_MDEyMw=="}, &webhooks.WebhookDelivery{EventID: "x"})
	}
	if a := try(true, "shop.example", "127.0.0.1"); a.problem != "" || got.Load() != 1 {
		t.Fatalf("where private addresses are allowed, the answer is %+v", a)
	}
	for _, list := range [][]string{
		{"127.0.0.1"},
		{"127.0.0.1", "10.0.0.5"},
		{"169.254.169.254"},
		{"192.168.1.1"},
		{"100.64.0.1"},
		{"0.0.0.0"},
		{"::1", "127.0.0.1"},
		{"::ffff:127.0.0.1", "127.0.0.1"},
		{"fd00::1", "10.0.0.1"},
		{"64:ff9b::7f00:1", "127.0.0.1"},
	} {
		if a := try(false, "shop.example", list...); a.problem != errPrivate.Error() {
			t.Errorf("a name that leads to %v: %+v", list, a)
		}
	}
	for _, host := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:a9fe:a9fe", "fe80::1"} {
		if a := try(false, host); a.problem != errPrivate.Error() {
			t.Errorf("%s: %+v", host, a)
		}
	}
	if got.Load() != 1 {
		t.Errorf("a private address got %d requests", got.Load()-1)
	}
}
