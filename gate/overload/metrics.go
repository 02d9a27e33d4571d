package overload

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/internal/metric"
)

// descs describe the numbers.
var descs metric.Set

var (
	descInFlight = descs.New("dibs_overload_in_flight", "Claims that are with the engine.")
	descLimit    = descs.New("dibs_overload_limit", "How many may be; it falls when claims take longer than the target.")
	descShed     = descs.New("dibs_overload_shed_total", "Claims refused as overloaded because more were under way than may be.")
	descLatency  = descs.New("dibs_overload_latency_seconds", "How long claims that wait for the engine took lately.")
	descTarget   = descs.New("dibs_overload_target_seconds", "How long they may take before fewer are let in.")
	descState    = descs.New("dibs_overload_state", "1 while the node says in /readyz that it is overloaded, else 0.")
)

// Describe sends the descriptions of the guard's numbers.
func (g *Guard) Describe(out chan<- *prometheus.Desc) { descs.Describe(out) }

// Collect sends the guard's numbers.
func (g *Guard) Collect(out chan<- prometheus.Metric) {
	v := g.View()
	metric.Gauge(out, descInFlight, v.InFlight)
	metric.Gauge(out, descLimit, v.Limit)
	metric.Count(out, descShed, g.shed.Load())
	metric.Gauge(out, descLatency, float64(v.LatencyMS)/1000)
	metric.Gauge(out, descTarget, float64(v.TargetMS)/1000)
	metric.Gauge(out, descState, metric.Flag(v.Overloaded))
}
