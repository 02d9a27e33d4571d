package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// proc is a server's process.
// ended is closed when the process is gone and was waited for: its port is free then.
// cmd is set before launch returns and not changed after.
type proc struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// launch starts the program. It runs until it is killed or this process ends.
// Its output goes into one log that later starts append to.
func (s *Server) launch(program string, args []string) (*proc, error) {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	p := &proc{cmd: exec.CommandContext(context.Background(), program, args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.dir, log, log
	if len(s.env) > 0 {
		p.cmd.Env = append(os.Environ(), s.env...)
	}
	if err := s.lower(p.cmd); err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The system ends the server with the thread that started it: this one
		// stays until the server ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			// It is killed in the end: how it ended says nothing.
			_ = p.cmd.Wait()
		}
		// Nothing was written through this handle.
		_ = log.Close()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	return p, nil
}

// kill ends the process at once and waits for it.
func (p *proc) kill() {
	// It may have ended before; then there is nobody to kill.
	_ = p.cmd.Process.Kill()
	<-p.ended
}
