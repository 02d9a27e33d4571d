package nodemetrics

import (
	"context"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/metric"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// descs describe all metrics.
var descs metric.Set

// Metrics with labels, and those that are computed.
var (
	buildInfo      = descs.New("dibs_build_info", "1, for what runs here.", "version", "go_version", "durability")
	ready          = descs.New("dibs_ready", "1 while /readyz reports ready, else 0.")
	dependencyUp   = descs.New("dibs_dependency_up", "1 while a dependency works, else 0.", "dependency")
	deploymentUp   = descs.New("dibs_deployment_up", "1 for each deployment of the engine that can decide claims, else 0, by its number in the ledger; an engine of one is number 1.", "deployment")
	durabilityLost = descs.New("dibs_durability_lost", "1 while a setting keeps the engine from giving the level that was asked for, else 0; /readyz says what to set it to.", "level", "setting")
	claims         = descs.New("dibs_claims_total", "Answers to claims that reached the service, by outcome; claims refused earlier are in dibs_claim_seconds and dibs_limit_refused_total.", "outcome")
	backlogMost    = descs.New("dibs_journal_backlog", "Journal entries that wait to be settled, of the campaign with the most.")
	lagMost        = descs.New("dibs_settle_lag_seconds", "How long the oldest entry has waited to be settled.")

	campaignRemaining = descs.New("dibs_campaign_remaining", "Units that can still be granted.", "campaign")
	campaignLow       = descs.New("dibs_campaign_low", "1 while no more than the campaign's low_stock can be granted, else 0.", "campaign")
	campaignGranted   = descs.New("dibs_campaign_granted", "Units granted and not released.", "campaign")
	campaignBacklog   = descs.New("dibs_campaign_journal_backlog", "Journal entries that wait to be settled.", "campaign")
	campaignLag       = descs.New("dibs_campaign_settle_lag_seconds", "How long the oldest of them has waited.", "campaign")
	campaignRefused   = descs.New("dibs_campaign_refused_total", "Claims that this node refused, by reason.", "campaign", "reason")

	sinkBehind    = descs.New("dibs_events_behind_rows", "Rows of the feed that wait for a sink; a row holds up to 512 events. Each node shows all sinks, ten seconds late at most.", "sink")
	sinkLag       = descs.New("dibs_events_lag_seconds", "How long the oldest of them has waited.", "sink")
	sinkPublished = descs.New("dibs_events_published_total", "Events that a sink has taken, by any node.", "sink")
	sinkFailures  = descs.New("dibs_events_failures", "Failed attempts since the last success.", "sink")

	pushed = descs.New("dibs_push_followers_total", "Followers that this node has put into events of announcements: at once, or by the queue.", "how")
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
	{descs.New("dibs_granted_total", "Claims granted by this node, repeats not counted."), counter, func(m *node.Metrics) float64 { return float64(m.Granted) }},
	{descs.New("dibs_expired_total", "Unpaid claims that this node released after their time."), counter, func(m *node.Metrics) float64 { return float64(m.Expired) }},
	{descs.New("dibs_credited_total", "Shares of red packets that this node credited."), counter, func(m *node.Metrics) float64 { return float64(m.Credited) }},
	{descs.New("dibs_settled_total", "Journal entries that this node settled."), counter, func(m *node.Metrics) float64 { return float64(m.Settled) }},
	{descs.New("dibs_settle_batches_total", "Transactions that settled entries."), counter, func(m *node.Metrics) float64 { return float64(m.SettleBatches) }},
	{descs.New("dibs_settle_errors_total", "Settlements that failed and are retried."), counter, func(m *node.Metrics) float64 { return float64(m.SettleErrors) }},
	{descs.New("dibs_settle_seconds_total", "Time spent settling."), counter, func(m *node.Metrics) float64 { return m.SettleTime.Seconds() }},
	{descs.New("dibs_quarantined_entries", "Journal entries that the ledger could not take; look into anything above 0."), gauge, func(m *node.Metrics) float64 { return float64(m.Quarantined) }},
	{descs.New("dibs_campaigns_live", "Campaigns that this node takes claims for."), gauge, func(m *node.Metrics) float64 { return float64(m.Live) }},
	{descs.New("dibs_campaigns_halted", "Campaigns that this node could not load, or cannot settle any more."), gauge, func(m *node.Metrics) float64 { return float64(m.Halted) }},
	{descs.New("dibs_redpackets_stuck", "Red packets whose crediting is stuck."), gauge, func(m *node.Metrics) float64 { return float64(m.Stuck) }},
	{descs.New("dibs_engine_waiting_claims", "Claims that wait in this process, for their decision or for it to be durable."), gauge, func(m *node.Metrics) float64 { return float64(m.Waiting) }},
	{descs.New("dibs_engine_lost_batches_total", "Batches of claims whose outcome was unknown at first."), counter, func(m *node.Metrics) float64 { return float64(m.EngineStats.Lost) }},
	{descs.New("dibs_outbox_behind_commands", "Commands that the last attempt could not send to the engine."), gauge, func(m *node.Metrics) float64 { return float64(m.OutboxBehind) }},
	{descs.New("dibs_outbox_errors_total", "Failed attempts to send commands to the engine."), counter, func(m *node.Metrics) float64 { return float64(m.OutboxErrors) }},
	{descs.New("dibs_shard_transfers_total", "Transfers of units between the shards of a campaign that this node began."), counter, func(m *node.Metrics) float64 { return float64(m.Moving.Transfers) }},
	{descs.New("dibs_shard_waits_total", "Waits of claims at a shard that had too little left, for units of other shards."), counter, func(m *node.Metrics) float64 { return float64(m.Moving.Waited) }},
	{descs.New("dibs_webhooks_disabled", "Webhooks disabled by hand or after repeated failures; ten seconds late at most."), gauge, func(m *node.Metrics) float64 { return float64(m.WebhooksDisabled) }},
	{descs.New("dibs_webhooks_failing", "Webhooks whose last attempt failed."), gauge, func(m *node.Metrics) float64 { return float64(m.WebhooksFailing) }},
	{descs.New("dibs_push_skipped_total", "Followers who had unfollowed when their turn came, counted when their announcement is done."), counter, func(m *node.Metrics) float64 { return float64(m.Pushes.Skipped) }},
	{descs.New("dibs_push_errors_total", "Failed attempts to enqueue followers; each is retried."), counter, func(m *node.Metrics) float64 { return float64(m.Pushes.Errors) }},
	{descs.New("dibs_push_announcements", "Announcements that run, up to 100. Each node shows all."), gauge, func(m *node.Metrics) float64 { return float64(m.Pushes.Running) }},
	{descs.New("dibs_push_waiting_followers", "Followers of the running announcements who are not enqueued yet."), gauge, func(m *node.Metrics) float64 { return float64(m.Pushes.Waiting) }},
	{descs.New("dibs_push_rate_followers", "Followers a second that the running announcements are set to tell."), gauge, func(m *node.Metrics) float64 { return float64(m.Pushes.Rate) }},
	{descs.New("dibs_push_still_seconds", "How long the longest-stalled announcement has made no progress."), gauge, func(m *node.Metrics) float64 { return m.Pushes.Still.Seconds() }},
}

// nanoseconds is the unit of a histogram of times, in seconds.
const nanoseconds = 1e-9

var stages = descs.New("dibs_claim_stage_seconds", "Where claims spend their time: gates and engine, of one claim in 64; queue and durable, of each batch; ledger, of each grant at the level ledgered.", "stage")

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
	{descs.New("dibs_engine_batch_claims", "Claims that were decided, or made durable, together."), 1, func(m *node.Metrics) dibs.Tally { return m.EngineStats.Batches }, nil},
	{descs.New("dibs_settle_batch_entries", "Journal entries that one transaction settled."), 1, func(m *node.Metrics) dibs.Tally { return m.SettleSizes }, nil},
	{descs.New("dibs_settle_transaction_seconds", "Time of one settling transaction."), nanoseconds, func(m *node.Metrics) dibs.Tally { return m.SettleTimes }, nil},
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
func (n *Collector) Describe(out chan<- *prometheus.Desc) { descs.Describe(out) }

// histogram makes a histogram. Prometheus wants each bucket with all below it.
func histogram(d *prometheus.Desc, t dibs.Tally, unit float64, labels ...string) prometheus.Metric {
	buckets, sum := make(map[float64]uint64, len(t.Bounds)), uint64(0)
	for i, n := range t.Counts {
		sum += uint64(n)
		if i < len(t.Bounds) {
			buckets[float64(t.Bounds[i])*unit] = sum
		}
	}
	return prometheus.MustNewConstHistogram(d, sum, float64(t.Sum)*unit, buckets, labels...)
}

// Collect reads the node once.
func (n *Collector) Collect(out chan<- prometheus.Metric) {
	m := n.node.Observe()
	for i := range numbers {
		out <- prometheus.MustNewConstMetric(numbers[i].desc, numbers[i].kind, numbers[i].of(&m))
	}
	for i := range histograms {
		h := &histograms[i]
		out <- histogram(h.desc, h.of(&m), h.unit, h.labels...)
	}
	n.collectHealth(out)
	for _, f := range m.LevelSettings {
		metric.Gauge(out, durabilityLost, metric.Flag(!f.OK()), m.Level, f.Subject)
	}
	metric.Count(out, claims, m.Granted, dibs.Granted.String())
	metric.Count(out, claims, m.Replayed, "replayed")
	for _, r := range claimRefusals {
		metric.Count(out, claims, m.Refused[r], r.String())
	}
	metric.Count(out, pushed, m.Pushes.AtOnce, "at_once")
	metric.Count(out, pushed, m.Pushes.Queued, "queued")
	for i := range m.Sinks {
		s := &m.Sinks[i]
		metric.Gauge(out, sinkBehind, s.Behind, s.Name)
		metric.Gauge(out, sinkLag, float64(s.LagMS)/1000, s.Name)
		metric.Count(out, sinkPublished, s.Published, s.Name)
		metric.Gauge(out, sinkFailures, s.Failures, s.Name)
	}
	for i := range m.Campaigns {
		collectCampaign(out, &m.Campaigns[i])
	}
}

// collectHealth sends what /readyz says.
func (n *Collector) collectHealth(out chan<- prometheus.Metric) {
	h := n.node.Health(context.Background())
	metric.Gauge(out, buildInfo, 1, n.version, runtime.Version(), h.Durability)
	metric.Gauge(out, ready, metric.Flag(h.Ready))
	for name, d := range h.Dependencies {
		metric.Gauge(out, dependencyUp, metric.Flag(d.OK), name)
	}
	for number, up := range h.Deployments {
		metric.Gauge(out, deploymentUp, metric.Flag(up), strconv.Itoa(number))
	}
	metric.Gauge(out, backlogMost, h.JournalBacklog)
	metric.Gauge(out, lagMost, float64(h.SettleLagMS)/1000)
}

// collectCampaign sends one campaign's numbers.
func collectCampaign(out chan<- prometheus.Metric, c *live.CampaignMetrics) {
	metric.Gauge(out, campaignRemaining, c.Remaining, c.CampaignID)
	metric.Gauge(out, campaignLow, metric.Flag(c.Low), c.CampaignID)
	metric.Gauge(out, campaignGranted, c.Granted, c.CampaignID)
	metric.Gauge(out, campaignBacklog, c.Backlog, c.CampaignID)
	metric.Gauge(out, campaignLag, float64(c.LagMS)/1000, c.CampaignID)
	// Two reasons may share a word, and a metric must appear once.
	words := map[string]int64{}
	for r, v := range c.Refused {
		if v > 0 {
			words[dibs.Reason(r).String()] += v
		}
	}
	for word, v := range words {
		metric.Count(out, campaignRefused, v, c.CampaignID, word)
	}
}
