package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
)

// face is an address with what is served there.
type face struct {
	http *http.Server
	ln   net.Listener
}

// listen takes the addresses: the users' first, the administrators' last. They are
// the same one unless admin_listen is set. Only the first is bounded by address: programs of administrators call the
// other one from few addresses, with many connections.
func (s *Server) listen(ctx context.Context) error {
	for _, at := range []struct{ flag, address string }{{"--listen", s.c.Listen}, {"--admin-listen", s.c.AdminListen}} {
		if at.address == "" {
			continue
		}
		ln, err := listen(ctx, at.flag, at.address)
		if err != nil {
			return err
		}
		if s.outer == nil {
			s.outer = newAddressBound(ln, s.c, s.log)
			ln = s.outer
		}
		s.faces = append(s.faces, face{ln: ln})
	}
	return nil
}

// listen takes an address. When another program has it, the error names the flag that changes the address: dibs may have
// chosen that of administrators by itself.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s is in use by another program, or by this one's other address: stop that one, or name another %s (127.0.0.1:0 takes a free port)", address, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return ln, nil
}

// URL returns the address for users, with its real port.
func (s *Server) URL() string { return s.urlOf(s.faces[0]) }

// AdminURL returns the address for administrators, with its real port.
func (s *Server) AdminURL() string { return s.urlOf(s.faces[len(s.faces)-1]) }

func (s *Server) urlOf(f face) string {
	if s.certs != nil {
		return "https://" + f.ln.Addr().String()
	}
	return "http://" + f.ln.Addr().String()
}
