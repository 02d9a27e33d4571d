package limit

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/metric"
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
	if i := slices.Index(names[:], name); i >= 0 {
		c.refused[i].Add(1)
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

// descs describe the numbers.
var descs metric.Set

var (
	descRefused = descs.New("dibs_limit_refused_total", "Claims that a limit refused on this node, by limit: of the server (user, address, server, campaign), of a campaign (campaign.user and so on), and of lists (blocked).", "limit")
	descWaited  = descs.New("dibs_limit_waited_total", "Claims that waited for their turn in a leaky bucket.")
	descNodes   = descs.New("dibs_limit_nodes", "Nodes that share limits, as far as this one knows.")
	descFailing = descs.New("dibs_limit_sharing_failing", "1 while this node cannot share limits with others and keeps its shares, else 0.")
	descFailed  = descs.New("dibs_limit_sharing_errors_total", "Rounds of sharing that failed.")
)

// Describe implements prometheus.Collector.
func (l *Limiter) Describe(out chan<- *prometheus.Desc) { descs.Describe(out) }

// Collect implements prometheus.Collector.
func (l *Limiter) Collect(out chan<- prometheus.Metric) {
	for i := range names {
		metric.Count(out, descRefused, l.seen.refused[i].Load(), names[i])
	}
	nodes := int64(1)
	if l.sharing != nil {
		nodes = l.sharing.nodes.Load()
	}
	metric.Count(out, descWaited, l.seen.waited.Load())
	metric.Gauge(out, descNodes, nodes)
	metric.Gauge(out, descFailing, l.seen.failing.Load())
	metric.Count(out, descFailed, l.seen.failed.Load())
}
