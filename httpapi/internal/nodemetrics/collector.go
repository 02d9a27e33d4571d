package nodemetrics

import (
	"context"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// descs are the descriptions of all metrics; desc adds one.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	descs = append(descs, d)
	return d
}

// Metrics with labels, and those that are computed.
var (
	buildInfo      = desc("dibs_build_info", "1, for what runs here.", "version", "go_version", "durability")
	ready          = desc("dibs_ready", "1 while /readyz reports ready, else 0.")
	dependencyUp   = desc("dibs_dependency_up", "1 while a dependency works, else 0.", "dependency")
	deploymentUp   = desc("dibs_deployment_up", "1 for each deployment of the engine that can decide claims, else 0, by its number in the ledger; an engine of one is number 1.", "deployment")
	durabilityLost = desc("dibs_durability_lost", "1 while a setting keeps the engine from giving the level that was asked for, else 0; /readyz says what to set it to.", "level", "setting")
	claims         = desc("dibs_claims_total", "Answers to claims that reached the service, by outcome; claims refused earlier are in dibs_claim_seconds and dibs_limit_refused_total.", "outcome")
	backlogMost    = desc("dibs_journal_backlog", "Journal entries that wait to be settled, of the campaign with the most.")
	lagMost        = desc("dibs_settle_lag_seconds", "How long the oldest entry has waited to be settled.")

	campaignRemaining = desc("dibs_campaign_remaining", "Units that can still be granted.", "campaign")
	campaignLow       = desc("dibs_campaign_low", "1 while no more than the campaign's low_stock can be granted, else 0.", "campaign")
	campaignGranted   = desc("dibs_campaign_granted", "Units granted and not released.", "campaign")
	campaignBacklog   = desc("dibs_campaign_journal_backlog", "Journal entries that wait to be settled.", "campaign")
	campaignLag       = desc("dibs_campaign_settle_lag_seconds", "How long the oldest of them has waited.", "campaign")
	campaignRefused   = desc("dibs_campaign_refused_total", "Claims that this node refused, by reason.", "campaign", "reason")

	sinkBehind    = desc("dibs_events_behind_rows", "Rows of the feed that wait for a sink; a row holds up to 512 events. Each node shows all sinks, ten seconds late at most.", "sink")
	sinkLag       = desc("dibs_events_lag_seconds", "How long the oldest of them has waited.", "sink")
	sinkPublished = desc("dibs_events_published_total", "Events that a sink has taken, by any node.", "sink")
	sinkFailures  = desc("dibs_events_failures", "Failed attempts since the last success.", "sink")

	pushed = desc("dibs_push_followers_total", "Followers that this node has put into events of announcements: at once, or by the queue.", "how")
)

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// numbers are the metrics without labels, and how they are read from a snapshot. They
// are shown from the start, at zero.
var numbers = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*node.Metrics) float64
}{
	{desc("dibs_granted_total", "Claims granted by this node, repeats not counted."), counter, func(m *node.Metrics) float64 { return float64(m.Granted) }},
	{desc("dibs_expired_total", "Unpaid claims that this node released after their time."), counter, func(m *node.Metrics) float64 { return float64(m.Expired) }},
	{desc("dibs_credited_total", "Shares of red packets that this node credited."), counter, func(m *node.Metrics) float64 { return float64(m.Credited) }},
	{desc("dibs_settled_total", "Journal entries that this node settled."), counter, func(m *node.Metrics) float64 { return float64(m.Settled) }},
	{desc("dibs_settle_batches_total", "Transactions that settled entries."), counter, func(m *node.Metrics) float64 { return float64(m.SettleBatches) }},
	{desc("dibs_settle_errors_total", "Settlements that failed and are retried."), counter, func(m *node.Metrics) float64 { return float64(m.SettleErrors) }},
	{desc("dibs_settle_seconds_total", "Time spent settling."), counter, func(m *node.Metrics) float64 { return m.SettleTime.Seconds() }},
	{desc("dibs_quarantined_entries", "Journal entries that the ledger could not take; look into anything above 0."), gauge, func(m *node.Metrics) float64 { return float64(m.Quarantined) }},
	{desc("dibs_campaigns_live", "Campaigns that this node takes claims for."), gauge, func(m *node.Metrics) float64 { return float64(m.Live) }},
	{desc("dibs_campaigns_halted", "Campaigns that this node could not load, or cannot settle any more."), gauge, func(m *node.Metrics) float64 { return float64(m.Halted) }},
	{desc("dibs_redpackets_stuck", "Red packets whose crediting is stuck."), gauge, func(m *node.Metrics) float64 { return float64(m.Stuck) }},
	{desc("dibs_engine_waiting_claims", "Claims that wait in this process, for their decision or for it to be durable."), gauge, func(m *node.Metrics) float64 { return float64(m.Waiting) }},
	{desc("dibs_engine_lost_batches_total", "Batches of claims whose outcome was unknown at first."), counter, func(m *node.Metrics) float64 { return float64(m.EngineStats.Lost) }},
	{desc("dibs_outbox_behind_commands", "Commands that the last attempt could not send to the engine."), gauge, func(m *node.Metrics) float64 { return float64(m.OutboxBehind) }},
	{desc("dibs_outbox_errors_total", "Failed attempts to send commands to the engine."), counter, func(m *node.Metrics) float64 { return float64(m.OutboxErrors) }},
	{desc("dibs_shard_transfers_total", "Transfers of units between the shards of a campaign that this node began."), counter, func(m *node.Metrics) float64 { return float64(m.Moving.Transfers) }},
	{desc("dibs_shard_waits_total", "Waits of claims at a shard that had too little left, for units of other shards."), counter, func(m *node.Metrics) float64 { return float64(m.Moving.Waited) }},
	{desc("dibs_webhooks_disabled", "Webhooks disabled by hand or after repeated failures; ten seconds late at most."), gauge, func(m *node.Metrics) float64 { return float64(m.WebhooksDisabled) }},
	{desc("dibs_webhooks_failing", "Webhooks whose last attempt failed."), gauge, func(m *node.Metrics) float64 { return float64(m.WebhooksFailing) }},
	{desc("dibs_push_skipped_total", "Followers who had unfollowed when their turn came, counted when their announcement is done."), counter, func(m *node.Metrics) float64 { return float64(m.Pushes.Skipped) }},
	{desc("dibs_push_errors_total", "Failed attempts to enqueue followers; each is retried."), counter, func(m *node.Metrics) float64 { return float64(m.Pushes.Errors) }},
	{desc("dibs_push_announcements", "Announcements that run, up to 100. Each node shows all."), gauge, func(m *node.Metrics) float64 { return float64(m.Pushes.Running) }},
	{desc("dibs_push_waiting_followers", "Followers of the running announcements who are not enqueued yet."), gauge, func(m *node.Metrics) float64 { return float64(m.Pushes.Waiting) }},
	{desc("dibs_push_rate_followers", "Followers a second that the running announcements are set to tell."), gauge, func(m *node.Metrics) float64 { return float64(m.Pushes.Rate) }},
	{desc("dibs_push_still_seconds", "How long the longest-stalled announcement has made no progress."), gauge, func(m *node.Metrics) float64 { return m.Pushes.Still.Seconds() }},
}

// nanoseconds is the unit of a histogram of times, in seconds.
const nanoseconds = 1e-9

var stages = desc("dibs_claim_stage_seconds", "Where claims spend their time: gates and engine, of one claim in 64; queue and durable, of each batch; ledger, of each grant at the level ledgered.", "stage")

// histograms are the distributions, and how they are read from a snapshot.
var histograms = []struct {
	desc *prometheus.Desc
	// unit is what 1 is worth.
	unit float64
	of   func(*node.Metrics) dibs.Tally
	// labels are the values of the labels.
	labels []string
}{
	{stages, nanoseconds, func(m *node.Metrics) dibs.Tally { return m.Gates }, []string{"gates"}},
	{stages, nanoseconds, func(m *node.Metrics) dibs.Tally { return m.Engine }, []string{"engine"}},
	{stages, nanoseconds, func(m *node.Metrics) dibs.Tally { return m.EngineStats.Queued }, []string{"queue"}},
	{stages, nanoseconds, func(m *node.Metrics) dibs.Tally { return m.EngineStats.Durable }, []string{"durable"}},
	{stages, nanoseconds, func(m *node.Metrics) dibs.Tally { return m.Ledger }, []string{"ledger"}},
	{desc("dibs_engine_batch_claims", "Claims that were decided, or made durable, together."), 1, func(m *node.Metrics) dibs.Tally { return m.EngineStats.Batches }, nil},
	{desc("dibs_settle_batch_entries", "Journal entries that one transaction settled."), 1, func(m *node.Metrics) dibs.Tally { return m.SettleSizes }, nil},
	{desc("dibs_settle_transaction_seconds", "Time of one settling transaction."), nanoseconds, func(m *node.Metrics) dibs.Tally { return m.SettleTimes }, nil},
}

// claimRefusals are the reasons for which the service refuses claims.
var claimRefusals = []dibs.Reason{
	dibs.InvalidRequest, dibs.KeyReused, dibs.NotEligible, dibs.NotFound, dibs.Paused, dibs.NotStarted, dibs.Ended, dibs.SoldOut,
	dibs.LimitReached, dibs.TooManyClaims, dibs.RateLimited, dibs.Waiting, dibs.TicketRequired, dibs.Unavailable, dibs.Overloaded,
}

// Node has the numbers.
type Node interface {
	// Observe returns a snapshot of what the node counts, from memory.
	Observe() node.Metrics
	// Health checks the node's dependencies; it bounds the time of each check.
	Health(ctx context.Context) api.HealthView
}

// Collector shows the node's numbers as metrics. It reads them when Prometheus
// does. Use New.
type Collector struct {
	node    Node
	version string
}

// New returns the collector of a node that runs a version of dibs.
func New(nd Node, version string) *Collector { return &Collector{node: nd, version: version} }

// Describe lists the metrics.
func (n *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// sender sends metrics to Prometheus.
type sender chan<- prometheus.Metric

func (ch sender) count(d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func (ch sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// histogram sends a histogram. Prometheus wants each bucket with all below it.
func (ch sender) histogram(d *prometheus.Desc, t dibs.Tally, unit float64, labels ...string) {
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

// Collect reads the node once.
func (n *Collector) Collect(out chan<- prometheus.Metric) {
	ch, m := sender(out), n.node.Observe()
	for i := range numbers {
		ch <- prometheus.MustNewConstMetric(numbers[i].desc, numbers[i].kind, numbers[i].of(&m))
	}
	for i := range histograms {
		h := &histograms[i]
		ch.histogram(h.desc, h.of(&m), h.unit, h.labels...)
	}
	n.collectHealth(ch)
	for _, f := range m.LevelSettings {
		ch.gauge(durabilityLost, one(!f.OK()), m.Level, f.Subject)
	}
	ch.count(claims, float64(m.Granted), dibs.Granted.String())
	ch.count(claims, float64(m.Replayed), "replayed")
	for _, r := range claimRefusals {
		ch.count(claims, float64(m.Refused[r]), r.String())
	}
	ch.count(pushed, float64(m.Pushes.AtOnce), "at_once")
	ch.count(pushed, float64(m.Pushes.Queued), "queued")
	for i := range m.Sinks {
		s := &m.Sinks[i]
		ch.gauge(sinkBehind, float64(s.Behind), s.Name)
		ch.gauge(sinkLag, float64(s.LagMS)/1000, s.Name)
		ch.count(sinkPublished, float64(s.Published), s.Name)
		ch.gauge(sinkFailures, float64(s.Failures), s.Name)
	}
	for i := range m.Campaigns {
		ch.campaign(&m.Campaigns[i])
	}
}

// collectHealth sends what /readyz says.
func (n *Collector) collectHealth(ch sender) {
	h := n.node.Health(context.Background())
	ch.gauge(buildInfo, 1, n.version, runtime.Version(), h.Durability)
	ch.gauge(ready, one(h.Ready))
	for name, d := range h.Dependencies {
		ch.gauge(dependencyUp, one(d.OK), name)
	}
	for number, up := range h.Deployments {
		ch.gauge(deploymentUp, one(up), strconv.Itoa(number))
	}
	ch.gauge(backlogMost, float64(h.JournalBacklog))
	ch.gauge(lagMost, float64(h.SettleLagMS)/1000)
}

// campaign sends one campaign's numbers.
func (ch sender) campaign(c *live.CampaignMetrics) {
	ch.gauge(campaignRemaining, float64(c.Remaining), c.CampaignID)
	ch.gauge(campaignLow, one(c.Low), c.CampaignID)
	ch.gauge(campaignGranted, float64(c.Granted), c.CampaignID)
	ch.gauge(campaignBacklog, float64(c.Backlog), c.CampaignID)
	ch.gauge(campaignLag, float64(c.LagMS)/1000, c.CampaignID)
	// Two reasons may share a word, and a metric must appear once.
	words := map[string]int64{}
	for r, v := range c.Refused {
		if v > 0 {
			words[dibs.Reason(r).String()] += v
		}
	}
	for word, v := range words {
		ch.count(campaignRefused, float64(v), c.CampaignID, word)
	}
}
