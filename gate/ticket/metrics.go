package ticket

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what tickets count on this node.
type counts struct {
	challenges, issued               atomic.Int64
	missing, expired, foreign        atomic.Int64
	workRefused, humanRefused, early atomic.Int64
}

var (
	descChallenges = prometheus.NewDesc("dibs_ticket_challenges_total", "Challenges that this node handed out.", nil, nil)
	descIssued     = prometheus.NewDesc("dibs_tickets_issued_total", "Tickets that this node handed out.", nil, nil)
	descDenied     = prometheus.NewDesc("dibs_tickets_denied_total", "Tickets that were not handed out, by what was wrong: the time, the work, the human check.", []string{"cause"}, nil)
	descRefused    = prometheus.NewDesc("dibs_ticket_refused_total", "Claims refused on this node, by what their ticket was.", []string{"ticket"}, nil)
)

// Describe implements prometheus.Collector.
func (t *Tickets) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descChallenges, descIssued, descDenied, descRefused} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (t *Tickets) Collect(out chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v *atomic.Int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v.Load()), labels...)
	}
	c := &t.counts
	count(descChallenges, &c.challenges)
	count(descIssued, &c.issued)
	count(descDenied, &c.early, "time")
	count(descDenied, &c.workRefused, "work")
	count(descDenied, &c.humanRefused, "human_check")
	count(descRefused, &c.missing, "missing")
	count(descRefused, &c.expired, "expired")
	count(descRefused, &c.foreign, "foreign")
}
