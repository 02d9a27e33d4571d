package audience

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what a keeper counts.
type counts struct {
	notLoaded, failed atomic.Int64
	// failing is how many could not be loaded the last time.
	failing atomic.Int64
}

var (
	descLoaded    = prometheus.NewDesc("dibs_audiences_loaded", "Lists and followings that this node has in memory, by kind.", []string{"kind"}, nil)
	descUsers     = prometheus.NewDesc("dibs_audience_users", "Users in them, by kind; changes of followers since are not counted.", []string{"kind"}, nil)
	descBytes     = prometheus.NewDesc("dibs_audience_bytes", "Memory that they take, by kind.", []string{"kind"}, nil)
	descFailing   = prometheus.NewDesc("dibs_audiences_failing", "Lists and followings that could not be loaded the last time.", nil, nil)
	descFailed    = prometheus.NewDesc("dibs_audience_errors_total", "Times that one could not be loaded.", nil, nil)
	descNotLoaded = prometheus.NewDesc("dibs_audience_not_loaded_total", "Claims that could not be answered yet, since who may claim was being loaded.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLoaded, descUsers, descBytes, descFailing, descFailed, descNotLoaded} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	var lists, users, size int64
	k.lists.Range(func(_, v any) bool {
		if s := v.(*list).set.Load(); s != nil {
			lists, users, size = lists+1, users+s.Len(), size+int64(s.Bytes())
		}
		return true
	})
	gauge(descLoaded, lists, "list")
	gauge(descUsers, users, "list")
	gauge(descBytes, size, "list")
	lists, users, size = 0, 0, 0
	k.merchants.Range(func(_, v any) bool {
		if f := v.(*followers).now.Load(); f != nil {
			lists, users, size = lists+1, users+f.base.Len(), size+int64(f.base.Bytes())
		}
		return true
	})
	gauge(descLoaded, lists, "followers")
	gauge(descUsers, users, "followers")
	gauge(descBytes, size, "followers")
	gauge(descFailing, k.counts.failing.Load())
	out <- prometheus.MustNewConstMetric(descFailed, prometheus.CounterValue, float64(k.counts.failed.Load()))
	out <- prometheus.MustNewConstMetric(descNotLoaded, prometheus.CounterValue, float64(k.counts.notLoaded.Load()))
}
