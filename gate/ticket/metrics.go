package ticket

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/internal/metric"
)

// counts are what tickets count on this node.
type counts struct {
	challenges, issued               atomic.Int64
	missing, expired, foreign        atomic.Int64
	workRefused, humanRefused, early atomic.Int64
}

// descs describe the numbers.
var descs metric.Set

var (
	descChallenges = descs.New("dibs_ticket_challenges_total", "Challenges that this node handed out.")
	descIssued     = descs.New("dibs_tickets_issued_total", "Tickets that this node handed out.")
	descDenied     = descs.New("dibs_tickets_denied_total", "Tickets that were not handed out, by what was wrong: the time, the work, the human check.", "cause")
	descRefused    = descs.New("dibs_ticket_refused_total", "Claims refused on this node, by what their ticket was.", "ticket")
)

// Describe implements prometheus.Collector.
func (t *Tickets) Describe(out chan<- *prometheus.Desc) { descs.Describe(out) }

// Collect implements prometheus.Collector.
func (t *Tickets) Collect(out chan<- prometheus.Metric) {
	c := &t.counts
	metric.Count(out, descChallenges, c.challenges.Load())
	metric.Count(out, descIssued, c.issued.Load())
	metric.Count(out, descDenied, c.early.Load(), "time")
	metric.Count(out, descDenied, c.workRefused.Load(), "work")
	metric.Count(out, descDenied, c.humanRefused.Load(), "human_check")
	metric.Count(out, descRefused, c.missing.Load(), "missing")
	metric.Count(out, descRefused, c.expired.Load(), "expired")
	metric.Count(out, descRefused, c.foreign.Load(), "foreign")
}
