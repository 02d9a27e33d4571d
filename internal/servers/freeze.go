package servers

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// Freeze stops the server without ending it, with every process that it has begun:
// its connections stay open, new ones are taken by the system, and nothing answers.
// Thaw lets it go on; a server stays frozen no longer than the test.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { s.Thaw(t) })
	// The first process begins no other one once it is stopped.
	if err := s.each(Pause); err != nil {
		t.Fatal(err)
	}
}

// Thaw lets a frozen server go on. One that is not frozen notices nothing.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	if err := s.each(Resume); err != nil {
		t.Fatal(err)
	}
}

// each does something with the server's first process, then with those that it has
// begun.
// mu is held, so the server is not killed or started meanwhile. A child that has
// ended is no error.
func (s *Server) each(do func(*os.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := do(s.proc.cmd.Process); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	pids, err := children(s.proc.cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	for _, pid := range pids {
		p, err := os.FindProcess(pid)
		if err == nil {
			err = do(p)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("servers: process %d: %w", pid, err)
		}
	}
	return nil
}
