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

// Redis is a redis-server of a test's own: unlike the databases, tests fill
// it, flush it and kill it, so that none is shared.
type Redis struct {
	server  *Server
	program string
	port    int
	args    []string

	mu   sync.Mutex
	proc *proc
}

// RedisAlways makes every answer wait until what it tells is on disk.
var RedisAlways = []string{"--appendonly", "yes", "--appendfsync", "always"}

// StartRedis starts a server on a free port, with its files in the folder,
// which must exist. The arguments follow those of every server; Kill ends it.
func StartRedis(dir string, args ...string) (*Redis, error) {
	program, err := find("redis-server", "/usr/bin/redis-server")
	if err != nil {
		return nil, fmt.Errorf("servers: redis-server is needed and not there (install the package redis-server): %w", err)
	}
	// A port that is free now may be taken a moment later: then the server ends,
	// and another port is tried.
	for range 5 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		r := &Redis{server: &Server{k: &kind{name: "redis"}, dir: dir}, program: program, port: port, args: args}
		err = r.Start()
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, errEnded) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("servers: redis-server found no port; see %s: %w", filepath.Join(dir, "server.log"), errEnded)
}

var errEnded = errors.New("servers: redis-server has ended")

// Addr is where the server listens, host:port.
func (r *Redis) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

// URL is Addr as a URL.
func (r *Redis) URL() string { return "redis://" + r.Addr() }

// Process is the server's process; nil while it does not run.
func (r *Redis) Process() *os.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc == nil {
		return nil
	}
	return r.proc.cmd.Process
}

// Start starts the server, again after Kill, and returns when it has read its
// files and answers.
func (r *Redis) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	args := append([]string{
		"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.server.dir, "--save", "", "--daemonize", "no",
	}, r.args...)
	p, err := r.server.launch(r.program, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.pong(ctx)
		if err == nil {
			r.proc = p
			return nil
		}
		select {
		case <-p.ended:
			return errEnded
		case <-ctx.Done():
			p.kill()
			return fmt.Errorf("servers: redis-server does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// pong asks whether the server answers, which it does not while it loads.
func (r *Redis) pong(ctx context.Context) (err error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "+PONG") {
		err = errors.New(strings.TrimSpace(line))
	}
	return err
}

// Kill ends the server as kill -9 does. What it had written to its files
// stays; Start starts it on them again.
func (r *Redis) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc != nil {
		r.proc.kill()
		r.proc = nil
	}
}
