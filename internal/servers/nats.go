package servers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// NATS is a NATS server of a test's own, with JetStream.
// All but its process is set before the first start, and Login while the server does not run.
type NATS struct {
	alone
	program string
	// Login is the user and the password, "ann:secret", that it asks for from its next start on;
	// empty for none.
	Login string
}

// StartNATS starts a server on a free port, with its streams in the folder, which is made if need be.
// It asks for login, unless that is empty. Kill ends it.
func StartNATS(dir, login string) (*NATS, error) {
	program, err := find("nats-server", "/usr/sbin/nats-server")
	if err != nil {
		return nil, fmt.Errorf("servers: nats-server is needed and not there (install the package nats-server): %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	n := &NATS{alone: alone{server: &Server{k: &kind{name: "nats-server"}, dir: dir}}, program: program, Login: login}
	return n, n.anyPort(n.Start)
}

// Start starts the server, again after Kill, and returns when it answers.
func (n *NATS) Start() error {
	args := []string{"--name", n.name(), "--addr", "127.0.0.1", "--port", strconv.Itoa(n.port), "--jetstream", "--store_dir", filepath.Join(n.server.dir, "streams")}
	if user, password, asked := strings.Cut(n.Login, ":"); asked {
		args = append(args, "--user", user, "--pass", password)
	}
	return n.begin(n.program, args, n.answers)
}

// name tells the server from others: one of another test may have been faster with the port.
func (n *NATS) name() string { return strings.ReplaceAll(n.server.dir, "/", "_") }

// answers waits for the first line, which the server sends once it serves.
func (n *NATS) answers(ctx context.Context) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = talk(ctx, n.Addr(), "", func(in *bufio.Reader) error {
		line, err := in.ReadString('\n')
		ok = strings.HasPrefix(line, "INFO ") && strings.Contains(line, strconv.Quote(n.name()))
		return err
	})
	return ok, err
}

// URL is the address as clients take it, without the login.
func (n *NATS) URL() string { return "nats://" + n.Addr() }
