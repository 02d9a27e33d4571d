package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
)

// numbers shows the service's own numbers as metrics, read when asked for.
type numbers struct {
	svc Service

	granted, credited, settled, batches, failures, settleTime, quarantined *prometheus.Desc
	remaining, low, held, backlog, lag, refused                            *prometheus.Desc
	sinkBehind, sinkLag, sinkPublished, sinkFailures                       *prometheus.Desc
}

func newNumbers(svc Service) *numbers {
	node := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	campaign := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"campaign"}, more...), nil)
	}
	sink := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"sink"}, nil) }
	return &numbers{
		svc:           svc,
		sinkBehind:    sink("dibs_events_behind_rows", "Rows of the feed that wait for a sink; a row tells up to 512 events. Any node tells of all sinks, ten seconds late at most."),
		sinkLag:       sink("dibs_events_lag_seconds", "How long the oldest of them has waited."),
		sinkPublished: sink("dibs_events_published_total", "Events that a sink has taken, by any node."),
		sinkFailures:  sink("dibs_events_failures", "Attempts that failed since the last that did not."),

		granted:     node("dibs_granted_total", "Claims granted by this node, repeats not counted."),
		credited:    node("dibs_credited_total", "Shares of red packets that this node credited."),
		settled:     node("dibs_settled_total", "Journal entries that this node settled."),
		batches:     node("dibs_settle_batches_total", "Transactions that settled entries."),
		failures:    node("dibs_settle_errors_total", "Settlements that failed and are tried again."),
		settleTime:  node("dibs_settle_seconds_total", "Time spent settling."),
		quarantined: node("dibs_quarantined_entries", "Journal entries that the ledger could not take; anything above 0 wants a look."),
		remaining:   campaign("dibs_campaign_remaining", "Units that can still be granted."),
		low:         campaign("dibs_campaign_low", "1 while no more than the campaign's low_stock can be granted, else 0."),
		held:        campaign("dibs_campaign_granted", "Units granted and not released."),
		backlog:     campaign("dibs_campaign_journal_backlog", "Journal entries that wait to be settled."),
		lag:         campaign("dibs_campaign_settle_lag_seconds", "How long the oldest of them has waited."),
		refused:     campaign("dibs_campaign_refused_total", "Claims that this node refused, by reason.", "reason"),
	}
}

// Describe lists the metrics.
func (n *numbers) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		n.granted, n.credited, n.settled, n.batches, n.failures, n.settleTime, n.quarantined,
		n.remaining, n.low, n.held, n.backlog, n.lag, n.refused,
		n.sinkBehind, n.sinkLag, n.sinkPublished, n.sinkFailures,
	} {
		ch <- d
	}
}

// Collect reads the service once.
func (n *numbers) Collect(ch chan<- prometheus.Metric) {
	m := n.svc.Observe()
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count(n.granted, float64(m.Granted))
	count(n.credited, float64(m.Credited))
	count(n.settled, float64(m.Settled))
	count(n.batches, float64(m.SettleBatches))
	count(n.failures, float64(m.SettleErrors))
	count(n.settleTime, m.SettleTime.Seconds())
	gauge(n.quarantined, float64(m.Quarantined))
	for i := range m.Sinks {
		s := &m.Sinks[i]
		gauge(n.sinkBehind, float64(s.Behind), s.Name)
		gauge(n.sinkLag, float64(s.LagMS)/1000, s.Name)
		count(n.sinkPublished, float64(s.Published), s.Name)
		gauge(n.sinkFailures, float64(s.Failures), s.Name)
	}
	for i := range m.Campaigns {
		c := &m.Campaigns[i]
		gauge(n.remaining, float64(c.Remaining), c.CampaignID)
		low := 0.0
		if c.Low {
			low = 1
		}
		gauge(n.low, low, c.CampaignID)
		gauge(n.held, float64(c.Granted), c.CampaignID)
		gauge(n.backlog, float64(c.Backlog), c.CampaignID)
		gauge(n.lag, float64(c.LagMS)/1000, c.CampaignID)
		// Two reasons may share a word, and a metric may appear but once.
		words := map[string]int64{}
		for r, v := range c.Refused {
			if v > 0 {
				words[dibs.Reason(r).String()] += v
			}
		}
		for word, v := range words {
			count(n.refused, float64(v), c.CampaignID, word)
		}
	}
}
