package gateway

import (
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	descOpen = prometheus.NewDesc("dibs_gateway_connections", "Open connections, by kind.", []string{"kind"}, nil)
	descAll  = prometheus.NewDesc("dibs_gateway_opened_total", "Connections opened.", nil, nil)
	descCut  = prometheus.NewDesc("dibs_gateway_ended_total", "Connections not taken or ended by the server, by cause.", []string{"cause"}, nil)
	descTaps = prometheus.NewDesc("dibs_gateway_claims_total", "Claims that came over WebSockets.", nil, nil)
	descSubs = prometheus.NewDesc("dibs_gateway_campaigns", "Campaigns that clients of this node follow.", nil, nil)
)

// Describe sends the descriptions of the hub's numbers.
func (h *Hub) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descOpen, descAll, descCut, descTaps, descSubs} {
		out <- d
	}
}

// Collect sends the hub's numbers.
// The numbers are read one after the other and may be of slightly different moments.
func (h *Hub) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	sockets, streams := len(h.conns), len(h.streams)
	h.mu.Unlock()
	h.topicsMu.Lock()
	topics := len(h.topics)
	h.topicsMu.Unlock()
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(descOpen, sockets, "websocket")
	gauge(descOpen, streams, "events")
	gauge(descSubs, topics)
	count(descAll, h.numbers.opened.Load())
	count(descCut, h.numbers.refused.Load(), "full")
	count(descCut, h.numbers.refusedAddress.Load(), "address")
	count(descCut, h.numbers.cutSlow.Load(), "slow")
	count(descCut, h.numbers.cutSilent.Load(), "silent")
	count(descCut, h.numbers.faults.Load(), "fault")
	count(descTaps, h.numbers.claims.Load())
}

// spread is a random part of a time.
func spread(within time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(within))) + time.Millisecond
}
