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
	"time"
)

// RabbitMQ is a broker of a test's own, with a port mapper for Erlang of its own.
//
// It is used by one goroutine. The ports never change, so clients find a broker again
// that was killed and started.
type RabbitMQ struct {
	server, mapper   *Server
	program, mapping string
	port, mapperPort int
	procs            []*proc
}

// StartRabbitMQ starts a broker on free ports, with its files in the folder,
// which must exist. It takes some seconds; Kill ends it. A port that was free
// may be taken before the broker is there: then it is tried again.
func StartRabbitMQ(dir string) (r *RabbitMQ, err error) {
	for range 3 {
		if r, err = tryRabbitMQ(dir); err == nil {
			return r, nil
		}
	}
	return nil, err
}

func tryRabbitMQ(dir string) (*RabbitMQ, error) {
	program, err := find("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
	if err != nil {
		return nil, fmt.Errorf("servers: rabbitmq-server is needed and not there (install the package rabbitmq-server): %w", err)
	}
	if inner := "/usr/lib/rabbitmq/bin/rabbitmq-server"; program != inner {
		if _, err := os.Stat(inner); err == nil {
			// The one in PATH insists on an account of its own.
			program = inner
		}
	}
	mapper, err := find("epmd", "/usr/bin/epmd")
	if err != nil {
		return nil, fmt.Errorf("servers: epmd is needed and not there (install the package erlang-base): %w", err)
	}
	var ports [3]int
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	text := func(port int) string { return strconv.Itoa(port) }
	if err := os.WriteFile(filepath.Join(dir, "plugins"), []byte("[].\n"), 0o600); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	erlang := []string{
		"HOME=" + dir, "ERL_EPMD_PORT=" + text(ports[1]), "ERL_EPMD_ADDRESS=127.0.0.1",
	}
	// One scheduler is enough for a test, and leaves the cores to others.
	r := &RabbitMQ{
		program: program, mapping: mapper, port: ports[0], mapperPort: ports[1],
		mapper: &Server{k: &kind{name: "epmd"}, dir: dir, env: erlang},
		server: &Server{k: &kind{name: "rabbitmq"}, dir: dir, env: append(erlang,
			// So the script becomes the broker, and does not stand beside it.
			"RUNNING_UNDER_SYSTEMD=true",
			"RABBITMQ_NODENAME=dibs"+text(ports[0])+"@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT="+text(ports[0]),
			"RABBITMQ_DIST_PORT="+text(ports[2]), "RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"),
			"RABBITMQ_LOGS=-", "RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "plugins"), "RABBITMQ_CONFIG_FILE="+filepath.Join(dir, "rabbit"),
			"RABBITMQ_CONF_ENV_FILE="+filepath.Join(dir, "none"), "RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"),
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1",
		)},
	}
	return r, r.Start()
}

// Start starts the broker with the files that it has, on the ports that it had.
// After an error it does not run.
func (r *RabbitMQ) Start() error {
	text := strconv.Itoa
	err := r.launch(r.mapper, r.mapping, "-port", text(r.mapperPort), "-address", "127.0.0.1")
	if err == nil {
		// Else the broker would start one that outlives it.
		err = await(context.Background(), "an answer of epmd", func(ctx context.Context) (bool, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", text(r.mapperPort)))
			if err != nil {
				return false, err
			}
			return true, c.Close()
		})
	}
	if err == nil {
		err = r.launch(r.server, r.program)
	}
	if err == nil {
		err = await(context.Background(), "an answer of rabbitmq-server", r.answers)
	}
	if err == nil {
		return nil
	}
	r.Kill()
	log, logErr := os.ReadFile(r.server.log())
	return errors.Join(fmt.Errorf("servers: rabbitmq-server does not begin: %w\n%s", err, log), logErr)
}

func (r *RabbitMQ) launch(s *Server, program string, args ...string) error {
	p, err := s.launch(program, args)
	if err == nil {
		r.procs = append(r.procs, p)
	}
	return err
}

// answers asks for the first word of the protocol.
// The broker answers this word only once it serves; its port is open earlier.
func (r *RabbitMQ) answers(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := talk(ctx, r.addr(), "AMQP\x00\x00\x09\x01", func(in *bufio.Reader) error {
		_, err := in.ReadByte()
		return err
	})
	return err == nil, err
}

func (r *RabbitMQ) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

// URL is the broker's address, with the user that it has from the beginning.
func (r *RabbitMQ) URL() string { return "amqp://guest:guest@" + r.addr() }

// Kill ends the broker as kill -9 does.
func (r *RabbitMQ) Kill() {
	for _, p := range r.procs {
		p.kill()
	}
	r.procs = nil
}
