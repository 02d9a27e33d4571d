package httpapi_test

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
)

// shortGateway has the routes of long-lived connections, and ends each at once.
type shortGateway struct{ prometheus.Collector }

func newShortGateway() shortGateway {
	return shortGateway{prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_short_gateway", Help: "Nothing."})}
}

func (shortGateway) WebSocket(http.ResponseWriter, *http.Request, func(context.Context, string) (string, time.Time, error), dibs.Visitor) error {
	return dibs.Fail(dibs.InvalidRequest, dibs.Text{EN: "ask for an upgrade"})
}

func (shortGateway) Events(w http.ResponseWriter, _ *http.Request, _, _ string, _ dibs.Visitor) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, err := w.Write([]byte("retry: 1000\n\n"))
	return err
}

func (shortGateway) Ticket(context.Context, string, time.Time) (string, time.Time, error) {
	return "a-ticket", time.Now().Add(time.Minute), nil
}
