package audience

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/internal/metric"
)

// counts are what a keeper counts.
type counts struct {
	notLoaded, failed atomic.Int64
	// failing is how many could not be loaded the last time.
	failing atomic.Int64
}

// descs describe the numbers.
var descs metric.Set

var (
	descLoaded    = descs.New("dibs_audiences_loaded", "Lists and followings that this node has in memory, by kind.", "kind")
	descUsers     = descs.New("dibs_audience_users", "Users in them, by kind; changes of followers since are not counted.", "kind")
	descBytes     = descs.New("dibs_audience_bytes", "Memory that they take, by kind.", "kind")
	descFailing   = descs.New("dibs_audiences_failing", "Lists and followings that could not be loaded the last time.")
	descFailed    = descs.New("dibs_audience_errors_total", "Times that one could not be loaded.")
	descNotLoaded = descs.New("dibs_audience_not_loaded_total", "Claims that could not be answered yet, since who may claim was being loaded.")
)

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(out chan<- *prometheus.Desc) { descs.Describe(out) }

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(out chan<- prometheus.Metric) {
	var lists, users, size int64
	k.lists.Range(func(_, v any) bool {
		if s := v.(*list).set.Load(); s != nil {
			lists, users, size = lists+1, users+s.Len(), size+int64(s.Bytes())
		}
		return true
	})
	metric.Gauge(out, descLoaded, lists, "list")
	metric.Gauge(out, descUsers, users, "list")
	metric.Gauge(out, descBytes, size, "list")
	lists, users, size = 0, 0, 0
	k.merchants.Range(func(_, v any) bool {
		if f := v.(*followers).current.Load(); f != nil {
			lists, users, size = lists+1, users+f.base.Len(), size+int64(f.base.Bytes())
		}
		return true
	})
	metric.Gauge(out, descLoaded, lists, "followers")
	metric.Gauge(out, descUsers, users, "followers")
	metric.Gauge(out, descBytes, size, "followers")
	metric.Gauge(out, descFailing, k.counts.failing.Load())
	metric.Count(out, descFailed, k.counts.failed.Load())
	metric.Count(out, descNotLoaded, k.counts.notLoaded.Load())
}
