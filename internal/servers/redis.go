package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Redis is a redis-server of a test's own: unlike the databases, tests fill
// it, flush it and kill it, so that none is shared.
//
// All but its process is set before the first start. Methods may be called from several
// goroutines: a test may kill the server while another goroutine asks it.
type Redis struct {
	alone
	program string
	// first are the arguments that must be so, args those that may override.
	first, args []string
	// ran says that it has run on its port before; mu guards it.
	ran bool
}

// RedisAlways makes every answer wait until what it tells is on disk.
var RedisAlways = []string{"--appendonly", "yes", "--appendfsync", "always"}

// StartRedis starts a server on a free port, with its files in the folder, which is made if
// need be. The arguments follow those of every server; Kill ends it.
func StartRedis(dir string, args ...string) (*Redis, error) {
	return startRedis(redisIn(dir), func(*Redis) ([]string, error) { return args, nil })
}

// redisIn is a server of Redis that has its files in a folder.
func redisIn(folder ...string) *Server {
	return &Server{k: &kind{name: "redis"}, dir: filepath.Join(folder...)}
}

// startRedis starts a server whose arguments may depend on its port.
func startRedis(s *Server, arguments func(r *Redis) ([]string, error)) (*Redis, error) {
	program, err := find("redis-server", "/usr/bin/redis-server")
	if err != nil {
		return nil, fmt.Errorf("servers: redis-server is needed and not there (install the package redis-server): %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	// A port that is free now may be taken a moment later: then the server ends,
	// and another port is tried.
	for range 5 {
		r := &Redis{alone: alone{server: s}, program: program}
		if r.port, err = freePort(); err != nil {
			return nil, err
		}
		if r.args, err = arguments(r); err != nil {
			return nil, err
		}
		err = r.Start()
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, errEnded) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("servers: redis-server found no port; see %s: %w", s.log(), errEnded)
}

// portPatience is how long a server that starts again waits for its port.
const portPatience = 10 * time.Second

var errEnded = errors.New("servers: redis-server has ended")

// URL is Addr as a URL.
func (r *Redis) URL() string { return "redis://" + r.Addr() }

// Start starts the server, again after Kill, and returns when it has read its
// files and answers.
//
// errEnded means that the process has ended by itself, for want of the port most
// times, and that a start on another port may succeed. One that has run before keeps
// its port, and waits until who has taken it meanwhile gives it back.
func (r *Redis) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc != nil {
		return errors.New("servers: redis-server runs")
	}
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := r.start()
		r.ran = r.ran || err == nil
		if !r.ran || !errors.Is(err, errEnded) || time.Since(begun) > portPatience {
			return err
		}
	}
}

// start starts the process once.
func (r *Redis) start() error {
	args := slices.Concat(r.first, []string{
		"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.server.dir, "--save", "", "--daemonize", "no",
	}, r.args)
	p, err := r.server.launch(r.program, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.pong(ctx, p.cmd.Process.Pid)
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

// pong asks whether the server answers, which it does not while it loads, and
// whether it is this one: another test's may have been faster with the port.
func (r *Redis) pong(ctx context.Context, pid int) error {
	return talk(ctx, r.Addr(), "PING\r\nINFO server\r\n", func(in *bufio.Reader) error {
		first, err := in.ReadString('\n')
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(first, "-NOAUTH"):
			// A server that wants a password answers too, and tells no stranger more.
			return nil
		case !strings.HasPrefix(first, "+PONG"):
			return errors.New(strings.TrimSpace(first))
		}
		for {
			line, err := in.ReadString('\n')
			// A server that refuses INFO cannot be told from another one with the port.
			if err != nil || strings.HasPrefix(line, "-") {
				return errors.Join(err, fmt.Errorf("servers: it tells no process: %s", line))
			}
			if id, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok && id != strconv.Itoa(pid) {
				return fmt.Errorf("servers: the redis-server of process %s has the port", id)
			} else if ok {
				return nil
			}
		}
	})
}

// Dir is the folder of the server's files.
func (r *Redis) Dir() string { return r.server.dir }

// Do runs one command on a connection of its own.
func (r *Redis) Do(ctx context.Context, args ...string) (rueidis.RedisMessage, error) {
	opt := rueidis.ClientOption{
		InitAddress: []string{r.Addr()}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
	}
	opt.Dialer.Timeout = 5 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		opt.Dialer.Timeout = min(opt.Dialer.Timeout, max(time.Until(deadline), time.Millisecond))
	}
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return rueidis.RedisMessage{}, fmt.Errorf("servers: %w", err)
	}
	defer c.Close()
	m, err := c.Do(ctx, c.B().Arbitrary(args...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return m, fmt.Errorf("servers: %s: %w", args[0], err)
	}
	return m, nil
}

// text runs a command that answers with a text.
func (r *Redis) text(ctx context.Context, args ...string) (string, error) {
	m, err := r.Do(ctx, args...)
	if err != nil {
		return "", err
	}
	text, err := m.ToString()
	if err != nil {
		return "", fmt.Errorf("servers: %s: %w", args[0], err)
	}
	return text, nil
}

// Info returns the fields of a section of INFO.
func (r *Redis) Info(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.text(ctx, "INFO", section)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// await tries until it is true, or patience is over; what it waits for names
// the failure.
func await(ctx context.Context, what string, try func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := try(ctx)
		if ok && err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("servers: %s does not happen: %w", what, ctx.Err()), err)
		}
	}
}
