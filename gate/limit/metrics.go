package limit

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
)

// onList is what refusals are counted as of who is on a list of the blocked.
const onList = "blocked"

// names are the limits that claims are counted by.
var names = [...]string{onList, "user", "address", "server", "campaign", "campaign.user", "campaign.address", "campaign.device", "campaign.campaign"}

// seen is what a limiter has seen. It takes no lock.
type seen struct {
	refused [len(names)]atomic.Int64
	waited  atomic.Int64
	// failing is 1 while nodes cannot share, failed how many rounds could not.
	failing, failed atomic.Int64
}

// refuse counts a refusal.
func (c *seen) refuse(res *dibs.Result) {
	name := res.Quota.Name
	if res.Outcome == dibs.Forbidden {
		name = onList
	}
	for i := range names {
		if names[i] == name {
			c.refused[i].Add(1)
			return
		}
	}
}

// shared counts a round of sharing.
func (c *seen) shared(err error) {
	if err == nil {
		c.failing.Store(0)
		return
	}
	c.failing.Store(1)
	c.failed.Add(1)
}

var (
	descRefused = prometheus.NewDesc("dibs_limit_refused_total", "Claims that a limit refused on this node, by limit: of the server (user, address, server, campaign), of a campaign (campaign.user and so on), and of lists (blocked).", []string{"limit"}, nil)
	descWaited  = prometheus.NewDesc("dibs_limit_waited_total", "Claims that waited for their turn in a leaky bucket.", nil, nil)
	descNodes   = prometheus.NewDesc("dibs_limit_nodes", "Nodes that share limits, as far as this one knows.", nil, nil)
	descFailing = prometheus.NewDesc("dibs_limit_sharing_failing", "1 while this node cannot share limits with others and keeps its shares, else 0.", nil, nil)
	descFailed  = prometheus.NewDesc("dibs_limit_sharing_errors_total", "Rounds of sharing that failed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *Limiter) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRefused, descWaited, descNodes, descFailing, descFailed} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Limiter) Collect(out chan<- prometheus.Metric) {
	for i := range names {
		out <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(l.seen.refused[i].Load()), names[i])
	}
	nodes := int64(1)
	if l.sharing != nil {
		nodes = l.sharing.nodes.Load()
	}
	out <- prometheus.MustNewConstMetric(descWaited, prometheus.CounterValue, float64(l.seen.waited.Load()))
	out <- prometheus.MustNewConstMetric(descNodes, prometheus.GaugeValue, float64(nodes))
	out <- prometheus.MustNewConstMetric(descFailing, prometheus.GaugeValue, float64(l.seen.failing.Load()))
	out <- prometheus.MustNewConstMetric(descFailed, prometheus.CounterValue, float64(l.seen.failed.Load()))
}
