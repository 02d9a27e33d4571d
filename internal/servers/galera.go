package servers

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// galeraLibrary is where Debian's package galera-4 keeps the replication.
const galeraLibrary = "/usr/lib/galera/libgalera_smm.so"

// copyScript hands a server that joins the files of another one: both are on
// this machine, so that nothing else has to be installed.
//
//go:embed wsrep_sst_copy.sh
var copyScript []byte

// Galera is a cluster of MariaDB servers, each of which has everything and may be
// written to. All have, or will have, what one has committed.
//
// The list of nodes does not change once it has started. A node may be killed and
// started again; the last one that runs keeps the data.
type Galera struct{ nodes []*Server }

// galeraTries is how often a cluster is begun anew: on a machine that is busy a
// server may be given up by the others while it joins.
const galeraTries = 3

// StartGalera starts a cluster of some servers. Stop ends it.
func StartGalera(size int) (*Galera, error) {
	if _, err := os.Stat(galeraLibrary); err != nil {
		return nil, fmt.Errorf("servers: Galera is needed and not there (install the package galera-4): %w", err)
	}
	var failed error
	for range galeraTries {
		g, err := startGalera(size)
		if err == nil {
			return g, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// startGalera tries once.
// Ports for the replication are chosen before the first server starts, since each
// names all others.
func startGalera(size int) (*Galera, error) {
	g := &Galera{}
	peers := make([]int, size)
	for i := range peers {
		var err error
		if peers[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	for i := range size {
		// One after the other: each has its files from those before it.
		s, err := start(galeraKind(i, peers))
		if err != nil {
			return nil, errors.Join(err, g.Stop())
		}
		g.nodes = append(g.nodes, s)
	}
	return g, nil
}

// Node is one server of the cluster.
func (g *Galera) Node(i int) *Server { return g.nodes[i] }

// Stop ends every server and removes their files.
func (g *Galera) Stop() error {
	var errs []error
	for _, s := range g.nodes {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}

// galeraKind is the i-th server of a cluster whose servers speak to each other on
// some ports.
func galeraKind(i int, peers []int) *kind {
	k := *theMariaDB.kind
	k.name, k.ready = "galera", "SELECT VARIABLE_VALUE = 'ON' FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_ready'"
	install := k.prepare
	k.prepare = func(s *Server, program string) error {
		script := filepath.Join(s.dir, "wsrep_sst_copy")
		if err := os.WriteFile(script, copyScript, 0o755); err != nil { //nolint:gosec // it is run by the server's account
			return fmt.Errorf("servers: %w", err)
		}
		s.env = []string{"PATH=" + s.dir + string(os.PathListSeparator) + os.Getenv("PATH")}
		// The first one makes the files of the cluster; the others get theirs from it.
		if i == 0 {
			return install(s, program)
		}
		if err := os.Mkdir(s.data(), 0o700); err != nil {
			return fmt.Errorf("servers: %w", err)
		}
		return s.own(s.data())
	}
	arguments := k.arguments
	k.arguments = func(s *Server) []string {
		args := append(arguments(s), galeraArguments(i, peers)...)
		if i > 0 {
			// The accounts come with the files of the first.
			args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "--init-file=") })
		}
		switch _, err := os.Stat(filepath.Join(s.data(), "grastate.dat")); {
		// It has been in the cluster before: it joins those that run.
		case err == nil:
			args = append(args, s.recovered(args)...)
		case i == 0:
			args = append(args, "--wsrep-new-cluster")
		}
		return args
	}
	return &k
}

// galeraArguments make a server one of a cluster. A server that says nothing is
// given up after two seconds instead of five, for the tests' sake.
func galeraArguments(i int, peers []int) []string {
	at := func(n int) string { return "127.0.0.1:" + strconv.Itoa(peers[n]) }
	all := make([]string, len(peers))
	for n := range peers {
		all[n] = at(n)
	}
	// A server that joins receives its missing data at the port after base_port. Start
	// tries again when somebody else has that one.
	options := []string{
		"base_port=" + strconv.Itoa(peers[i]), "gmcast.listen_addr=tcp://" + at(i), "gcache.size=32M",
		"evs.suspect_timeout=PT2S", "evs.inactive_timeout=PT6S", "evs.install_timeout=PT4S",
		"evs.inactive_check_period=PT0.2S", "evs.keepalive_period=PT0.5S", "evs.join_retrans_period=PT0.5S",
	}
	return []string{
		// Replication needs rows and interleaved counters; small buffers let three
		// servers fit beside a test.
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M",
		"--wsrep-on=ON", "--wsrep-provider=" + galeraLibrary, "--wsrep-cluster-name=dibs", "--wsrep-cluster-address=gcomm://" + strings.Join(all, ","),
		"--wsrep-node-address=" + at(i), "--wsrep-node-name=n" + strconv.Itoa(i), "--wsrep-sst-method=copy",
		"--wsrep-provider-options=" + strings.Join(options, ";"),
	}
}

var recoveredAt = regexp.MustCompile(`Recovered position: *([0-9a-f-]+:\d+)`)

// recovered is the argument that tells a server that was killed how far it had
// come, so that it is sent only what it lacks. Without it, it is sent everything.
// It never fails: every error leads to a full copy, which is right and only takes
// longer.
func (s *Server) recovered(args []string) []string {
	program, err := s.k.program()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), recoverPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(slices.Clone(args), "--wsrep-recover")...)
	cmd.Dir = s.dir
	if err := s.lower(cmd); err != nil {
		return nil
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		return nil
	}
	var position []string
	for lines := bufio.NewScanner(out); position == nil && lines.Scan(); {
		if m := recoveredAt.FindSubmatch(lines.Bytes()); m != nil {
			position = []string{"--wsrep-start-position=" + string(m[1])}
		}
	}
	// It is ended at once, whether or not it has said it: MariaDB 10.11 was seen not to
	// end by itself, and to take all of the machine's memory meanwhile.
	cancel()
	_ = cmd.Wait()
	return position
}

// recoverPatience is how long a server that was killed may take to say how far it
// had come; it takes a second.
const recoverPatience = 10 * time.Second
