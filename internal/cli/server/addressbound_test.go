package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// scripted is a listener whose connections a test makes.
type scripted struct {
	net.Listener
	waiting chan net.Conn
}

func (s *scripted) Accept() (net.Conn, error) {
	select {
	case c := <-s.waiting:
		return c, nil
	default:
		return nil, net.ErrClosed
	}
}

// from is a connection of some address.
type from struct {
	net.Conn
	at netip.AddrPort
}

func (f from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(f.at) }

// connect makes a connection of an address wait, and returns the client's end.
func (s *scripted) connect(address string) net.Conn {
	client, server := net.Pipe()
	s.waiting <- from{server, netip.AddrPortFrom(netip.MustParseAddr(address), 4711)}
	return client
}

// TestOpenConnectionsOfAnAddress: an address has a bounded number of connections open, and others, this machine and
// trusted proxies have theirs. What is refused is closed at once, is counted, and is told in the log once; who closes
// makes room.
func TestOpenConnectionsOfAnAddress(t *testing.T) {
	var told strings.Builder
	script := &scripted{waiting: make(chan net.Conn, 100)}
	ln := newAddressBound(script, &config.Config{ConnectionsPerAddress: 1, TrustedProxies: []string{"10.0.0.0/8"}}, slog.New(slog.NewTextHandler(&told, nil)))
	accept := func() net.Conn {
		t.Helper()
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const greedy = "192.0.2.7"
	var open []net.Conn
	for range ln.most {
		script.connect(greedy)
		open = append(open, accept())
	}
	for range 3 {
		client := script.connect(greedy)
		if c, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("one too many is accepted: %v, %v", c, err)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("one too many is not closed: %v", err)
		}
	}
	if n := ln.refused.Load(); n != 3 || strings.Count(told.String(), "connections are refused") != 1 || !strings.Contains(told.String(), greedy) {
		t.Errorf("%d are refused, the log has %q", n, told.String())
	}
	// The last three have no bound.
	for other, times := range map[string]int{"192.0.2.8": ln.most, "127.0.0.1": 2 * ln.most, "10.1.2.3": 2 * ln.most, "::ffff:10.1.2.3": 2 * ln.most} {
		for range times {
			script.connect(other)
			accept()
		}
	}
	for range 2 {
		_ = open[0].Close()
	}
	script.connect(greedy)
	accept()
	script.connect(greedy)
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("one that was closed twice made room for two: %v", err)
	}
}

// TestFacesAreBounded: the users' address is bounded, that of administrators, who are trusted, is not.
func TestFacesAreBounded(t *testing.T) {
	s := &Server{c: &config.Config{Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", ConnectionsPerAddress: 2}}
	if err := s.listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, f := range s.faces {
		if _, bounded := f.ln.(*addressBound); bounded != (i == 0) {
			t.Errorf("address %d is bounded: %t", i, bounded)
		}
		if err := f.ln.Close(); err != nil {
			t.Error(err)
		}
	}
	if s.outer.most != 8 {
		t.Errorf("an address may have %d connections", s.outer.most)
	}
}
