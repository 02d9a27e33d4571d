package gateway

import (
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/internal/metric"
)

// descs describe the numbers.
var descs metric.Set

var (
	descOpen = descs.New("dibs_gateway_connections", "Open connections, by kind.", "kind")
	descAll  = descs.New("dibs_gateway_opened_total", "Connections opened.")
	descCut  = descs.New("dibs_gateway_ended_total", "Connections not taken or ended by the server, by cause.", "cause")
	descTaps = descs.New("dibs_gateway_claims_total", "Claims that came over WebSockets.")
	descSubs = descs.New("dibs_gateway_campaigns", "Campaigns that clients of this node follow.")
)

// Describe sends the descriptions of the hub's numbers.
func (h *Hub) Describe(out chan<- *prometheus.Desc) { descs.Describe(out) }

// Collect sends the hub's numbers.
// The numbers are read one after the other and may be of slightly different moments.
func (h *Hub) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	sockets, streams := len(h.conns), len(h.streams)
	h.mu.Unlock()
	h.topicsMu.Lock()
	topics := len(h.topics)
	h.topicsMu.Unlock()
	metric.Gauge(out, descOpen, sockets, "websocket")
	metric.Gauge(out, descOpen, streams, "events")
	metric.Gauge(out, descSubs, topics)
	metric.Count(out, descAll, h.numbers.opened.Load())
	metric.Count(out, descCut, h.numbers.refused.Load(), "full")
	metric.Count(out, descCut, h.numbers.refusedAddress.Load(), "address")
	metric.Count(out, descCut, h.numbers.cutSlow.Load(), "slow")
	metric.Count(out, descCut, h.numbers.cutSilent.Load(), "silent")
	metric.Count(out, descCut, h.numbers.faults.Load(), "fault")
	metric.Count(out, descTaps, h.numbers.claims.Load())
}

// spread is a random part of a time.
func spread(within time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(within))) + time.Millisecond
}
