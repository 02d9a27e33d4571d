package overload

import "github.com/prometheus/client_golang/prometheus"

var (
	descInFlight = prometheus.NewDesc("dibs_overload_in_flight", "Claims that are with the engine.", nil, nil)
	descLimit    = prometheus.NewDesc("dibs_overload_limit", "How many may be; it falls when claims take longer than the target.", nil, nil)
	descShed     = prometheus.NewDesc("dibs_overload_shed_total", "Claims refused as overloaded because more were under way than may be.", nil, nil)
	descLatency  = prometheus.NewDesc("dibs_overload_latency_seconds", "How long claims that wait for the engine took lately.", nil, nil)
	descTarget   = prometheus.NewDesc("dibs_overload_target_seconds", "How long they may take before fewer are let in.", nil, nil)
	descState    = prometheus.NewDesc("dibs_overload_state", "1 while the node says in /readyz that it is overloaded, else 0.", nil, nil)
)

// Describe sends the descriptions of the guard's numbers.
func (g *Guard) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descInFlight, descLimit, descShed, descLatency, descTarget, descState} {
		out <- d
	}
}

// Collect sends the guard's numbers.
func (g *Guard) Collect(out chan<- prometheus.Metric) {
	v := g.View()
	gauge := func(d *prometheus.Desc, n float64) { out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n) }
	gauge(descInFlight, float64(v.InFlight))
	gauge(descLimit, float64(v.Limit))
	out <- prometheus.MustNewConstMetric(descShed, prometheus.CounterValue, float64(g.shed.Load()))
	gauge(descLatency, float64(v.LatencyMS)/1000)
	gauge(descTarget, float64(v.TargetMS)/1000)
	state := 0.0
	if v.Overloaded {
		state = 1
	}
	gauge(descState, state)
}
