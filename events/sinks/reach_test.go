package sinks

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// One server of several is enough, and a port that is not named is the broker's.
func TestReachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	open := l.Addr().String()
	for address, want := range map[string]bool{
		"kafka://" + open + "/events": true, "kafka://127.0.0.1:1," + open + "/events": true, "nats://127.0.0.1:1/x": false, "redis://127.0.0.1:1": false,
	} {
		if err := reachable(t.Context(), address); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	// No broker of its own listens on a port that is only ever a default.
	if err := reachable(t.Context(), "amqp://127.0.0.1/x"); err == nil || !strings.Contains(err.Error(), ":5672") {
		t.Errorf("the default port: %v", err)
	}
}

// A trouble is told at once, then once a minute with how long it lasts, and its end.
func TestTroubleIsToldRarely(t *testing.T) {
	var out bytes.Buffer
	tr := trouble{log: slog.New(slog.NewTextHandler(&out, nil))}
	now := time.Unix(1_700_000_000, 0)
	tr.over(now, "fine")
	for range 130 {
		tr.is(now, "events wait", errors.New("refused"), "sink", "s")
		now = now.Add(time.Second)
	}
	tr.over(now, "fine again", "sink", "s")
	tr.over(now, "fine again", "sink", "s")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "events wait") || strings.Contains(lines[0], "tries") ||
		!strings.Contains(lines[1], "tries=61 for=1m0s") || !strings.Contains(lines[2], "for=2m0s") || !strings.Contains(lines[3], "fine again") || !strings.Contains(lines[3], "after=2m10s") {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}
