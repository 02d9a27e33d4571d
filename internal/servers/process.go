package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
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

// alone is a server of a test's own, which is killed, frozen and started again. Its port
// never changes after the first start.
// mu guards proc, which is nil while the server does not run.
type alone struct {
	server *Server
	port   int

	mu   sync.Mutex
	proc *proc
}

// Addr is where the server listens, host:port.
func (a *alone) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.port)) }

// Process is the server's process; nil while it does not run.
func (a *alone) Process() *os.Process {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proc == nil {
		return nil
	}
	return a.proc.cmd.Process
}

// Kill ends the server as kill -9 does. Its files stay as they were written; Start
// starts it on them again.
func (a *alone) Kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proc != nil {
		a.proc.kill()
		a.proc = nil
	}
}

// anyPort starts the server on a free port. One that was free may be taken a moment later: then it
// is tried again.
func (a *alone) anyPort(start func() error) (err error) {
	for range 3 {
		if a.port, err = freePort(); err != nil {
			return err
		}
		if err = start(); err == nil {
			return nil
		}
	}
	return err
}

// begin starts the program and returns when it answers. An error has what it wrote.
func (a *alone) begin(program string, args []string, answers func(context.Context) (bool, error)) error {
	name := a.server.k.name
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proc != nil {
		return fmt.Errorf("servers: %s runs", name)
	}
	p, err := a.server.launch(program, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = await(ctx, "an answer of "+name, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			cancel()
			return false, fmt.Errorf("servers: %s has ended", name)
		default:
			return answers(ctx)
		}
	})
	if err != nil {
		p.kill()
		log, logErr := os.ReadFile(a.server.log())
		return errors.Join(err, fmt.Errorf("servers: %s wrote %s", name, log), logErr)
	}
	a.proc = p
	return nil
}

// Freeze stops the server without ending it: its connections stay, and nothing
// is answered until Thaw.
func (a *alone) Freeze() error { return a.signal(Pause) }

// Thaw lets a frozen server go on.
func (a *alone) Thaw() error { return a.signal(Resume) }

func (a *alone) signal(send func(*os.Process) error) error {
	p := a.Process()
	if p == nil {
		return fmt.Errorf("servers: %s does not run", a.server.k.name)
	}
	if err := send(p); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return nil
}

// talk connects to a server, says something and reads the answer, for as long as the
// context has.
func talk(ctx context.Context, addr, words string, read func(in *bufio.Reader) error) (err error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(c, words); err != nil {
		return err
	}
	return read(bufio.NewReader(c))
}
