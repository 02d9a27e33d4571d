package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// NATS is a NATS server of a test's own, with JetStream.
// mu guards proc; all else is set before the first start, and Login while the server does not run.
type NATS struct {
	// Login is the user and the password, "ann:secret", that it asks for from its next start on;
	// empty for none.
	Login string

	server  *Server
	program string
	port    int

	mu   sync.Mutex
	proc *proc
}

// StartNATS starts a server on a free port, with its streams in the folder, which must exist. It asks
// for login, unless that is empty. Kill ends it.
func StartNATS(dir, login string) (*NATS, error) {
	program, err := find("nats-server", "/usr/sbin/nats-server")
	if err != nil {
		return nil, fmt.Errorf("servers: nats-server is needed and not there (install the package nats-server): %w", err)
	}
	n := &NATS{Login: login, server: &Server{k: &kind{name: "nats"}, dir: dir}, program: program}
	// A port that was free may be taken a moment later.
	for range 3 {
		if n.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = n.Start(); err == nil {
			return n, nil
		}
	}
	return nil, err
}

// Start starts the server, again after Kill, on the port that it had, and returns when it answers.
func (n *NATS) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		return errors.New("servers: nats-server runs")
	}
	args := []string{"--addr", "127.0.0.1", "--port", strconv.Itoa(n.port), "--jetstream", "--store_dir", filepath.Join(n.server.dir, "streams")}
	if user, password, asked := strings.Cut(n.Login, ":"); asked {
		args = append(args, "--user", user, "--pass", password)
	}
	p, err := n.server.launch(n.program, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = await(ctx, "an answer of nats-server", func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			cancel()
			return false, errors.New("servers: nats-server has ended")
		default:
			return n.answers(ctx)
		}
	})
	if err != nil {
		p.kill()
		log, logErr := os.ReadFile(n.server.log())
		return errors.Join(fmt.Errorf("%w\n%s", err, log), logErr)
	}
	n.proc = p
	return nil
}

// answers waits for the first line, which the server sends once it serves.
func (n *NATS) answers(ctx context.Context) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Addr())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false, err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.HasPrefix(line, "INFO "), err
}

// Addr is where the server listens, host:port.
func (n *NATS) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

// URL is the address as clients take it, without the login.
func (n *NATS) URL() string { return "nats://" + n.Addr() }

// Kill ends the server as kill -9 does. Its files stay.
func (n *NATS) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		n.proc.kill()
		n.proc = nil
	}
}
