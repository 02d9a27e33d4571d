package servers_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// ask sends one inline command and returns the last of the lines expected.
func ask(t *testing.T, r *servers.Redis, command string, lines int) string {
	t.Helper()
	return askAt(t, r.Addr(), command, lines)
}

func askAt(t *testing.T, addr, command string, lines int) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	defer func() { must(t, c.Close()) }()
	_, err = c.Write([]byte(command + "\r\n"))
	must(t, err)
	in, last := bufio.NewReader(c), ""
	for range lines {
		last, err = in.ReadString('\n')
		must(t, err)
	}
	return strings.TrimSpace(last)
}

// TestRedisKeepsWhatItAnswered kills a server that syncs always, and finds
// what it had answered when it runs again, at the same place.
func TestRedisKeepsWhatItAnswered(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(r.Kill)
	if got := ask(t, r, "CONFIG GET appendfsync", 5); got != "always" {
		t.Errorf("appendfsync is %q", got)
	}
	if got := ask(t, r, "SET kept 7", 1); got != "+OK" {
		t.Errorf("SET answers %q", got)
	}
	if _, err := os.Stat(filepath.Join(r.Dir(), "server.log")); err != nil {
		t.Error(err)
	}
	r.Kill()
	if r.Process() != nil {
		t.Error("a killed server has a process")
	}
	if c, err := net.Dial("tcp", r.Addr()); err == nil {
		t.Errorf("the killed server answers: %v", c.Close())
	}
	must(t, r.Start())
	if got := ask(t, r, "GET kept", 2); got != "7" {
		t.Errorf("GET answers %q", got)
	}
}

// TestRedisServersAreApart starts two at once.
func TestRedisServersAreApart(t *testing.T) {
	var both [2]*servers.Redis
	for i := range both {
		r, err := servers.StartRedis(t.TempDir())
		must(t, err)
		t.Cleanup(r.Kill)
		both[i] = r
	}
	ask(t, both[0], "SET who 0", 1)
	if got := ask(t, both[1], "EXISTS who", 1); got != ":0" || both[0].URL() == both[1].URL() {
		t.Errorf("%s and %s are one server", both[0].URL(), both[1].URL())
	}
}

// do runs a command and returns its answer as a text.
func do(t *testing.T, r *servers.Redis, args ...string) string {
	t.Helper()
	m, err := r.Do(t.Context(), args...)
	must(t, err)
	return m.String()
}
