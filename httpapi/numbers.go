package httpapi

import (
	"context"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
)

// nodeNumber is one number of the node, and how it is read from a snapshot.
type nodeNumber struct {
	name, help string
	kind       prometheus.ValueType
	of         func(*dibs.Metrics) float64
}

const (
	counts = prometheus.CounterValue
	shows  = prometheus.GaugeValue
)

// nodeNumbers are there from the start, at zero.
var nodeNumbers = []nodeNumber{
	{"dibs_granted_total", "Claims granted by this node, repeats not counted.", counts, func(m *dibs.Metrics) float64 { return float64(m.Granted) }},
	{"dibs_expired_total", "Unpaid claims that this node released after their time.", counts, func(m *dibs.Metrics) float64 { return float64(m.Expired) }},
	{"dibs_credited_total", "Shares of red packets that this node credited.", counts, func(m *dibs.Metrics) float64 { return float64(m.Credited) }},
	{"dibs_settled_total", "Journal entries that this node settled.", counts, func(m *dibs.Metrics) float64 { return float64(m.Settled) }},
	{"dibs_settle_batches_total", "Transactions that settled entries.", counts, func(m *dibs.Metrics) float64 { return float64(m.SettleBatches) }},
	{"dibs_settle_errors_total", "Settlements that failed and are tried again.", counts, func(m *dibs.Metrics) float64 { return float64(m.SettleErrors) }},
	{"dibs_settle_seconds_total", "Time spent settling.", counts, func(m *dibs.Metrics) float64 { return m.SettleTime.Seconds() }},
	{"dibs_quarantined_entries", "Journal entries that the ledger could not take; anything above 0 wants a look.", shows, func(m *dibs.Metrics) float64 { return float64(m.Quarantined) }},
	{"dibs_campaigns_live", "Campaigns that this node takes claims for.", shows, func(m *dibs.Metrics) float64 { return float64(m.Live) }},
	{"dibs_campaigns_halted", "Campaigns that this node could not load, or cannot settle any more.", shows, func(m *dibs.Metrics) float64 { return float64(m.Halted) }},
	{"dibs_redpackets_stuck", "Red packets that do not get on.", shows, func(m *dibs.Metrics) float64 { return float64(m.Stuck) }},
	{"dibs_engine_waiting_claims", "Claims that wait in this process, to be decided or for their decision to last.", shows, func(m *dibs.Metrics) float64 { return float64(m.Waiting) }},
	{"dibs_engine_lost_batches_total", "Batches of claims of which nobody knew at once what became of them.", counts, func(m *dibs.Metrics) float64 { return float64(m.Work.Lost) }},
	{"dibs_outbox_behind_commands", "Commands that could not be sent to the engine the last time.", shows, func(m *dibs.Metrics) float64 { return float64(m.OutboxBehind) }},
	{"dibs_outbox_errors_total", "Times that commands could not be sent to the engine.", counts, func(m *dibs.Metrics) float64 { return float64(m.OutboxErrors) }},
	{"dibs_webhooks_disabled", "Webhooks that get nothing, by somebody's wish or since they failed for too long; ten seconds late at most.", shows, func(m *dibs.Metrics) float64 { return float64(m.WebhooksDisabled) }},
	{"dibs_webhooks_failing", "Webhooks whose last attempt failed.", shows, func(m *dibs.Metrics) float64 { return float64(m.WebhooksFailing) }},
	{"dibs_push_skipped_total", "Followers who followed no longer when their turn came, counted when their announcement is done.", counts, func(m *dibs.Metrics) float64 { return float64(m.Pushes.Skipped) }},
	{"dibs_push_errors_total", "Times that followers could not be enqueued, which is tried again.", counts, func(m *dibs.Metrics) float64 { return float64(m.Pushes.Errors) }},
	{"dibs_push_announcements", "Announcements that run, up to 100. Any node tells of all.", shows, func(m *dibs.Metrics) float64 { return float64(m.Pushes.Running) }},
	{"dibs_push_waiting_followers", "Followers of these who are not enqueued.", shows, func(m *dibs.Metrics) float64 { return float64(m.Pushes.Waiting) }},
	{"dibs_push_rate_followers", "How many a second are to leave their queues.", shows, func(m *dibs.Metrics) float64 { return float64(m.Pushes.Rate) }},
	{"dibs_push_still_seconds", "How long the one has stood still that has done so for longest.", shows, func(m *dibs.Metrics) float64 { return m.Pushes.Still.Seconds() }},
}

// nodeTally is one histogram of the node. One look of another label is another
// nodeTally of the same name.
type nodeTally struct {
	name, help string
	label      string
	value      string
	// unit is what 1 is worth.
	unit float64
	of   func(*dibs.Metrics) dibs.Tally
}

const (
	nanoseconds = 1e-9
	stageName   = "dibs_claim_stage_seconds"
	stageHelp   = "Where claims spend their time: gates and engine, of one claim in 64; queue and durable, of each batch; ledger, of each grant at the level ledgered."
)

var nodeTallies = []nodeTally{
	{stageName, stageHelp, "stage", "gates", nanoseconds, func(m *dibs.Metrics) dibs.Tally { return m.Gates }},
	{stageName, stageHelp, "stage", "engine", nanoseconds, func(m *dibs.Metrics) dibs.Tally { return m.Engine }},
	{stageName, stageHelp, "stage", "queue", nanoseconds, func(m *dibs.Metrics) dibs.Tally { return m.Work.Queued }},
	{stageName, stageHelp, "stage", "durable", nanoseconds, func(m *dibs.Metrics) dibs.Tally { return m.Work.Durable }},
	{stageName, stageHelp, "stage", "ledger", nanoseconds, func(m *dibs.Metrics) dibs.Tally { return m.Ledger }},
	{"dibs_engine_batch_claims", "Claims that were decided, or made durable, together.", "", "", 1, func(m *dibs.Metrics) dibs.Tally { return m.Work.Batches }},
	{"dibs_settle_batch_entries", "Journal entries that one transaction settled.", "", "", 1, func(m *dibs.Metrics) dibs.Tally { return m.SettleSizes }},
	{"dibs_settle_transaction_seconds", "What such a transaction took.", "", "", nanoseconds, func(m *dibs.Metrics) dibs.Tally { return m.SettleTimes }},
}

// claimRefusals are what claims may be refused with by the service.
var claimRefusals = []dibs.Reason{
	dibs.InvalidRequest, dibs.KeyReused, dibs.NotEligible, dibs.NotFound, dibs.Paused, dibs.NotStarted, dibs.Ended, dibs.SoldOut,
	dibs.LimitReached, dibs.TooManyClaims, dibs.RateLimited, dibs.Waiting, dibs.TicketRequired, dibs.Unavailable, dibs.Overloaded,
}

// numbers shows the service's own numbers as metrics, read when asked for.
type numbers struct {
	svc     Service
	version string
	// nodes and tallies are the descriptions of nodeNumbers and nodeTallies.
	nodes, tallies []*prometheus.Desc

	build, ready, dependency, lost, claims           *prometheus.Desc
	backlogMost, lagMost                             *prometheus.Desc
	remaining, low, held, backlog, lag, refused      *prometheus.Desc
	sinkBehind, sinkLag, sinkPublished, sinkFailures *prometheus.Desc
	pushed                                           *prometheus.Desc
}

func newNumbers(svc Service, version string) *numbers {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	n := &numbers{
		svc: svc, version: version,
		build:       desc("dibs_build_info", "1, for what runs here.", "version", "go_version", "durability"),
		ready:       desc("dibs_ready", "1 while /readyz says so, else 0."),
		dependency:  desc("dibs_dependency_up", "1 while a dependency does its work, else 0.", "dependency"),
		lost:        desc("dibs_durability_lost", "1 while a setting keeps the engine from giving the level that was asked for, else 0; /readyz says what to set it to.", "level", "setting"),
		claims:      desc("dibs_claims_total", "Answers to claims that came to the service, by outcome; those that were refused before are in dibs_claim_seconds and dibs_limit_refused_total.", "outcome"),
		backlogMost: desc("dibs_journal_backlog", "Journal entries that wait to be settled, of the campaign with the most."),
		lagMost:     desc("dibs_settle_lag_seconds", "How long the oldest entry has waited to be settled."),

		remaining: desc("dibs_campaign_remaining", "Units that can still be granted.", "campaign"),
		low:       desc("dibs_campaign_low", "1 while no more than the campaign's low_stock can be granted, else 0.", "campaign"),
		held:      desc("dibs_campaign_granted", "Units granted and not released.", "campaign"),
		backlog:   desc("dibs_campaign_journal_backlog", "Journal entries that wait to be settled.", "campaign"),
		lag:       desc("dibs_campaign_settle_lag_seconds", "How long the oldest of them has waited.", "campaign"),
		refused:   desc("dibs_campaign_refused_total", "Claims that this node refused, by reason.", "campaign", "reason"),

		sinkBehind:    desc("dibs_events_behind_rows", "Rows of the feed that wait for a sink; a row tells up to 512 events. Any node tells of all sinks, ten seconds late at most.", "sink"),
		sinkLag:       desc("dibs_events_lag_seconds", "How long the oldest of them has waited.", "sink"),
		sinkPublished: desc("dibs_events_published_total", "Events that a sink has taken, by any node.", "sink"),
		sinkFailures:  desc("dibs_events_failures", "Attempts that failed since the last that did not.", "sink"),

		pushed: desc("dibs_push_followers_total", "Followers whom this node has put into events of announcements: at once, or by the queue.", "how"),
	}
	for i := range nodeNumbers {
		n.nodes = append(n.nodes, desc(nodeNumbers[i].name, nodeNumbers[i].help))
	}
	for i := range nodeTallies {
		var labels []string
		if nodeTallies[i].label != "" {
			labels = []string{nodeTallies[i].label}
		}
		n.tallies = append(n.tallies, desc(nodeTallies[i].name, nodeTallies[i].help, labels...))
	}
	return n
}

// Describe lists the metrics.
func (n *numbers) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range n.nodes {
		ch <- d
	}
	seen := map[string]bool{}
	for i, d := range n.tallies {
		if !seen[nodeTallies[i].name] {
			ch <- d
		}
		seen[nodeTallies[i].name] = true
	}
	for _, d := range []*prometheus.Desc{
		n.build, n.ready, n.dependency, n.lost, n.claims, n.backlogMost, n.lagMost,
		n.remaining, n.low, n.held, n.backlog, n.lag, n.refused,
		n.sinkBehind, n.sinkLag, n.sinkPublished, n.sinkFailures, n.pushed,
	} {
		ch <- d
	}
}

// sender sends numbers as metrics.
type sender chan<- prometheus.Metric

func (ch sender) count(d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func (ch sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// tally sends a histogram, whose buckets Prometheus adds up.
func (ch sender) tally(d *prometheus.Desc, t dibs.Tally, unit float64, labels ...string) {
	buckets, sum := make(map[float64]uint64, len(t.Bounds)), uint64(0)
	for i, n := range t.Counts {
		sum += uint64(n)
		if i < len(t.Bounds) {
			buckets[float64(t.Bounds[i])*unit] = sum
		}
	}
	ch <- prometheus.MustNewConstHistogram(d, sum, float64(t.Sum)*unit, buckets, labels...)
}

// one is 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Collect reads the service once.
func (n *numbers) Collect(out chan<- prometheus.Metric) {
	ch, m := sender(out), n.svc.Observe()
	for i, d := range n.nodes {
		ch <- prometheus.MustNewConstMetric(d, nodeNumbers[i].kind, nodeNumbers[i].of(&m))
	}
	for i, d := range n.tallies {
		t := &nodeTallies[i]
		var labels []string
		if t.label != "" {
			labels = []string{t.value}
		}
		ch.tally(d, t.of(&m), t.unit, labels...)
	}
	n.collectHealth(ch)
	for _, f := range m.LevelSettings {
		ch.gauge(n.lost, one(!f.OK()), m.Level, f.Subject)
	}
	ch.count(n.claims, float64(m.Granted), dibs.Granted.String())
	ch.count(n.claims, float64(m.Replayed), "replayed")
	for _, r := range claimRefusals {
		ch.count(n.claims, float64(m.Refused[r]), r.String())
	}
	ch.count(n.pushed, float64(m.Pushes.AtOnce), "at_once")
	ch.count(n.pushed, float64(m.Pushes.Queued), "queued")
	for i := range m.Sinks {
		s := &m.Sinks[i]
		ch.gauge(n.sinkBehind, float64(s.Behind), s.Name)
		ch.gauge(n.sinkLag, float64(s.LagMS)/1000, s.Name)
		ch.count(n.sinkPublished, float64(s.Published), s.Name)
		ch.gauge(n.sinkFailures, float64(s.Failures), s.Name)
	}
	for i := range m.Campaigns {
		n.collectCampaign(ch, &m.Campaigns[i])
	}
}

// collectHealth sends what /readyz says. Each question in it is bounded.
func (n *numbers) collectHealth(ch sender) {
	h := n.svc.Health(context.Background())
	ch.gauge(n.build, 1, n.version, runtime.Version(), h.Durability)
	ch.gauge(n.ready, one(h.Ready))
	for name, d := range h.Dependencies {
		ch.gauge(n.dependency, one(d.OK), name)
	}
	ch.gauge(n.backlogMost, float64(h.JournalBacklog))
	ch.gauge(n.lagMost, float64(h.SettleLagMS)/1000)
}

// collectCampaign sends one campaign's numbers.
func (n *numbers) collectCampaign(ch sender, c *dibs.CampaignMetrics) {
	ch.gauge(n.remaining, float64(c.Remaining), c.CampaignID)
	ch.gauge(n.low, one(c.Low), c.CampaignID)
	ch.gauge(n.held, float64(c.Granted), c.CampaignID)
	ch.gauge(n.backlog, float64(c.Backlog), c.CampaignID)
	ch.gauge(n.lag, float64(c.LagMS)/1000, c.CampaignID)
	// Two reasons may share a word, and a metric may appear but once.
	words := map[string]int64{}
	for r, v := range c.Refused {
		if v > 0 {
			words[dibs.Reason(r).String()] += v
		}
	}
	for word, v := range words {
		ch.count(n.refused, float64(v), c.CampaignID, word)
	}
}
