package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// zooJar is where Debian has ZooKeeper, with what it needs named inside.
const zooJar = "/usr/share/java/zookeeper.jar"

// ZooKeeper is a ZooKeeper server of a test's own.
// All but its process is set before the first start.
type ZooKeeper struct {
	alone
	java string
}

// StartZooKeeper starts a server on a free port, with its files in the folder,
// which is made if need be. It takes sessions from 200 ms on; Kill ends it.
func StartZooKeeper(dir string) (*ZooKeeper, error) {
	java, err := find("java", "/usr/bin/java")
	if err == nil {
		_, err = os.Stat(zooJar)
	}
	if err != nil {
		return nil, fmt.Errorf("servers: ZooKeeper is needed and not there (install the package zookeeper): %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	z := &ZooKeeper{alone: alone{server: &Server{k: &kind{name: "zookeeper"}, dir: dir}}, java: java}
	return z, z.anyPort(z.Start)
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
	if err := z.server.write("zoo.cfg", z.settings()); err != nil {
		return err
	}
	return z.begin(z.java, []string{
		// Little memory and the first compiler only: the server is small, and has to be
		// there soon.
		"-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-cp", zooJar, "org.apache.zookeeper.server.ZooKeeperServerMain", filepath.Join(z.server.dir, "zoo.cfg"),
	}, z.answers)
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
	err = talk(ctx, z.Addr(), word, func(in *bufio.Reader) error {
		all, err := io.ReadAll(in)
		text = string(all)
		return err
	})
	return text, err
}

// URL is the server's address as package lock takes it.
func (z *ZooKeeper) URL() string { return "zookeeper://" + z.Addr() }
