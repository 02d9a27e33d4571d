// Package metric is how the parts of a node describe their numbers to Prometheus, and
// send them.
package metric

import "github.com/prometheus/client_golang/prometheus"

// Set has the descriptions of a part's numbers.
type Set []*prometheus.Desc

// New describes a number, and adds it to the set.
func (s *Set) New(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	*s = append(*s, d)
	return d
}

// Describe sends the descriptions, as a prometheus.Collector has to.
func (s Set) Describe(out chan<- *prometheus.Desc) {
	for _, d := range s {
		out <- d
	}
}

// Number is what a number may be counted in.
type Number interface {
	int | int64 | uint64 | float64
}

// Gauge sends a number that rises and falls.
func Gauge[N Number](out chan<- prometheus.Metric, d *prometheus.Desc, n N, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
}

// Count sends a number that only rises.
func Count[N Number](out chan<- prometheus.Metric, d *prometheus.Desc, n N, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// Flag is 1 for what holds, else 0.
func Flag(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
