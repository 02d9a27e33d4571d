package badnet_test

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/badnet"
	"github.com/dibs-dev/dibs/internal/servers"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ask sends one inline command and returns the line that answers it.
func ask(t *testing.T, addr, command string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	defer func() { must(t, c.Close()) }()
	_, err = c.Write([]byte(command + "\r\n"))
	must(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

func TestProxy(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	must(t, err)
	t.Cleanup(r.Kill)
	p, err := badnet.Start(r.Addr())
	must(t, err)
	defer p.Stop()
	ping := func() time.Duration {
		begun := time.Now()
		if got := ask(t, p.Addr(), "PING"); got != "+PONG" {
			t.Errorf("PING answers %q", got)
		}
		return time.Since(begun)
	}
	ping()
	must(t, p.Poison("slow", "latency", "downstream", map[string]int64{"latency": 200}))
	if took := ping(); took < 200*time.Millisecond {
		t.Errorf("a slow answer took %v", took)
	}
	p.Heal(t.Context())
	// On a busy machine one may take long; a slow proxy would make all of them.
	for begun := time.Now(); ping() > 200*time.Millisecond; {
		if time.Since(begun) > time.Minute {
			t.Fatal("healed, it is as slow as before")
		}
	}
	if err := p.Poison("odd", "sour", "downstream", nil); err == nil {
		t.Error("there is a toxic that nobody knows")
	}
}
