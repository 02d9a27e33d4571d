package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zooJar is where Debian has ZooKeeper, with what it needs named inside.
const zooJar = "/usr/share/java/zookeeper.jar"

// ZooKeeper is a ZooKeeper server of a test's own.
// mu guards proc; all else is set before the first start.
type ZooKeeper struct {
	server *Server
	java   string
	port   int

	mu   sync.Mutex
	proc *proc
}

// StartZooKeeper starts a server on a free port, with its files in the folder,
// which must exist. It takes sessions from 200 ms on; Kill ends it.
func StartZooKeeper(dir string) (*ZooKeeper, error) {
	java, err := find("java", "/usr/bin/java")
	if err == nil {
		_, err = os.Stat(zooJar)
	}
	if err != nil {
		return nil, fmt.Errorf("servers: ZooKeeper is needed and not there (install the package zookeeper): %w", err)
	}
	z := &ZooKeeper{server: &Server{k: &kind{name: "zookeeper"}, dir: dir}, java: java}
	// A port that was free may be taken a moment later.
	for range 3 {
		if z.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = z.Start(); err == nil {
			return z, nil
		}
	}
	log, logErr := os.ReadFile(z.server.log())
	return nil, errors.Join(err, fmt.Errorf("servers: ZooKeeper wrote %s", log), logErr)
}

// settings are those of ZooKeeper: as it is by default, but with a clock that
// ticks faster, so that short sessions end in time.
func (z *ZooKeeper) settings() string {
	return strings.Join([]string{
		"tickTime=100", "minSessionTimeout=200", "maxSessionTimeout=600000", "maxClientCnxns=0", "admin.enableServer=false", "4lw.commands.whitelist=srvr,wchs",
		"dataDir=" + filepath.Join(z.server.dir, "data"), "clientPortAddress=127.0.0.1", "clientPort=" + strconv.Itoa(z.port), "",
	}, "\n")
}

// Start starts the server, again after Kill, and returns when it answers.
func (z *ZooKeeper) Start() error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.proc != nil {
		return errors.New("servers: ZooKeeper runs")
	}
	file := filepath.Join(z.server.dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(z.settings()), 0o600); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	p, err := z.server.launch(z.java, []string{
		// Little memory and the first compiler only: the server is small, and has to be
		// there soon.
		"-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-cp", zooJar, "org.apache.zookeeper.server.ZooKeeperServerMain", file,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = await(ctx, "an answer of ZooKeeper", func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			cancel()
			return false, errors.New("servers: ZooKeeper has ended")
		default:
			return z.answers(ctx)
		}
	})
	if err != nil {
		p.kill()
		return err
	}
	z.proc = p
	return nil
}

// answers asks for what the server is: while it begins, it says that it does
// not serve.
func (z *ZooKeeper) answers(ctx context.Context) (ok bool, err error) {
	text, err := z.Ask(ctx, "srvr")
	return strings.Contains(text, "Mode: standalone"), err
}

// Ask sends one of the words of four letters, srvr or wchs, and returns the
// answer.
func (z *ZooKeeper) Ask(ctx context.Context, word string) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", z.Addr())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte(word)); err != nil {
		return "", err
	}
	all, err := io.ReadAll(c)
	return string(all), err
}

// Addr is where the server listens, host:port.
func (z *ZooKeeper) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(z.port)) }

// URL is Addr as package lock takes it.
func (z *ZooKeeper) URL() string { return "zookeeper://" + z.Addr() }

// Kill ends the server as kill -9 does. Its files stay.
func (z *ZooKeeper) Kill() {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.proc != nil {
		z.proc.kill()
		z.proc = nil
	}
}

// Freeze stops the server without ending it, until Thaw.
func (z *ZooKeeper) Freeze() error { return z.signal(Pause) }

// Thaw lets a frozen server go on.
func (z *ZooKeeper) Thaw() error { return z.signal(Resume) }

func (z *ZooKeeper) signal(send func(*os.Process) error) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.proc == nil {
		return errors.New("servers: ZooKeeper does not run")
	}
	if err := send(z.proc.cmd.Process); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return nil
}
