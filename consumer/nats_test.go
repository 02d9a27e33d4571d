package consumer_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/badnet"
)

// diary is what a logger has written.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(line)
}

// count is how often something was written.
func (d *diary) count(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), what)
}

// TestBadNetworkNATS: a connection that is reset, or says nothing any more, is noticed
// and told of, and what was on its way comes again when the server has waited for it.
func TestBadNetworkNATS(t *testing.T) {
	t.Parallel()
	r := newNATSRig(t)
	u, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	p, err := badnet.Start(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	u.Host = p.Addr()
	var log diary
	r.url, r.logger, r.timeout = u.String(), slog.New(slog.NewTextHandler(&log, nil)), 500*time.Millisecond
	r.start(16)
	// A connection that is lost while the consumer writes shows as the failed write, and
	// no return follows.
	for i := 0; i < 2 || i < 10 && log.count("the connection to the broker is back") < 2; i++ {
		calm, bad := fmt.Sprintf("a%d.0", i), fmt.Sprintf("b%d.0", i)
		r.publish(calm)
		r.await(calm, func() bool { return r.attempts[calm] > 0 })
		told := log.count("events wait")
		kind := []string{"reset_peer", "timeout"}[i%2]
		if err := p.Poison("bad", kind, "downstream", map[string]int64{"timeout": 0}); err != nil {
			t.Fatal(err)
		}
		r.publish(bad)
		r.await("the loss by "+kind+" is told", func() bool { return log.count("events wait") > told })
		p.Heal(t.Context())
		r.await(bad, func() bool { return r.attempts[bad] > 0 })
	}
}
