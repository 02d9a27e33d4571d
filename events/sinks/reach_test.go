package sinks

import (
	"net"
	"strings"
	"testing"
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
		"kafka://" + open + "/events": true, "kafka://127.0.0.1:1," + open + "/events": true, "nats://127.0.0.1:1/x": false, "kafka://127.0.0.1:1/events?addr=" + open: true, "redis://127.0.0.1:1": false,
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
