package rehearsal_test

import (
	"testing"

	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// TestThroughWebSockets holds every promise over long-lived connections.
func TestThroughWebSockets(t *testing.T) {
	r := rehearse(t, rehearsal.Config{Through: rehearsal.WebSocket, Users: 200, Requests: 1000, Stock: 50, Concurrency: 500})
	if !r.OK || count(r, "granted") != 50 || r.Stats.Granted != 50 || r.Connections != 200 {
		t.Errorf("50 units to 200 users:\n%s", table(t, r))
	}
}
