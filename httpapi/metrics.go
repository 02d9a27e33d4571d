package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/dibs-dev/dibs"
)

// seconds are the histograms' buckets: from what memory answers to what a
// stuck database does.
var seconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// newRegistry returns a registry with the metrics of the Go runtime and the process.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// metrics are what the handlers count.
// All of them are safe for concurrent use, and are counted without a lock of their own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	claims   claimTimes
}

// newMetrics registers the handlers' metrics, and those of other parts of the node.
func newMetrics(r *prometheus.Registry, others ...prometheus.Collector) (*metrics, error) {
	m := &metrics{
		registry: r,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dibs_http_requests_total", Help: "Requests by route and status, claims excepted.",
		}, []string{"route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dibs_http_request_seconds", Help: "Time to answer by route, claims excepted.", Buckets: seconds,
		}, []string{"route"}),
	}
	claims := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "dibs_claim_seconds", Help: "Time to answer a claim, by outcome; every answer counts, slow or fast.", Buckets: seconds,
	}, []string{"outcome"})
	for _, c := range append([]prometheus.Collector{m.requests, m.latency, claims}, others...) {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	for i := range m.claims.outcomes {
		m.claims.outcomes[i] = claims.WithLabelValues(dibs.Reason(i).String())
	}
	m.claims.replayed = claims.WithLabelValues("replayed")
	return m, nil
}

// claimTimes are the claim route's histograms, looked up once and not per claim.
type claimTimes struct {
	outcomes [dibs.ReasonCount]prometheus.Observer
	replayed prometheus.Observer
}

// observe counts the answer to a claim that came at start.
// Every reason has its histogram from the beginning, so that a rate over time does
// not begin with a gap.
func (c *claimTimes) observe(r dibs.Reason, start time.Time) {
	if int(r) >= len(c.outcomes) {
		r = dibs.Internal
	}
	c.outcomes[r].Observe(time.Since(start).Seconds())
}

// observeReplay counts the answer to a repeat.
func (c *claimTimes) observeReplay(start time.Time) {
	c.replayed.Observe(time.Since(start).Seconds())
}

// routeMetrics are one route's, with a counter per status as it occurs.
type routeMetrics struct {
	name     string
	requests *prometheus.CounterVec
	latency  prometheus.Observer
	byStatus sync.Map // int -> prometheus.Counter
}

// route returns the metrics of a pattern. Requests that match no route are "other".
func (m *metrics) route(pattern string) *routeMetrics {
	if !strings.Contains(pattern, " ") {
		pattern = "other"
	}
	return &routeMetrics{name: pattern, requests: m.requests, latency: m.latency.WithLabelValues(pattern)}
}

// observe counts an answer to a request that came at start.
func (m *routeMetrics) observe(status int, start time.Time) {
	if status == 0 {
		status = http.StatusOK
	}
	// Two requests may make the counter at once; the registry returns the same one to
	// both.
	counter, ok := m.byStatus.Load(status)
	if !ok {
		counter, _ = m.byStatus.LoadOrStore(status, m.requests.WithLabelValues(m.name, strconv.Itoa(status)))
	}
	counter.(prometheus.Counter).Inc()
	m.latency.Observe(time.Since(start).Seconds())
}
