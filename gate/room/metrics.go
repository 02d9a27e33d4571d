package room

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// maxShown is how many rooms metrics tell of one by one, the newest.
// Each room is a series for as long as it is shown; more would burden whoever stores
// them.
const maxShown = 200

// roomCounts are what rooms count on this node.
type roomCounts struct {
	joined, left, registered, failed atomic.Int64
}

var (
	descRooms      = prometheus.NewDesc("dibs_rooms_open", "Waiting rooms that this node knows.", nil, nil)
	descLotteries  = prometheus.NewDesc("dibs_lotteries_open", "Lotteries that this node knows.", nil, nil)
	descJoined     = prometheus.NewDesc("dibs_room_joins_total", "Requests for a place, answered by this node, repeats counted.", nil, nil)
	descLeft       = prometheus.NewDesc("dibs_room_leaves_total", "Places that were given up on this node.", nil, nil)
	descRegistered = prometheus.NewDesc("dibs_lottery_registrations_total", "Registrations that this node took, repeats not counted.", nil, nil)
	descFailed     = prometheus.NewDesc("dibs_room_errors_total", "Looks at waiting rooms and lotteries in the background that failed.", nil, nil)
	descWaiting    = prometheus.NewDesc("dibs_room_waiting", "Users in the room who are not admitted yet.", []string{"campaign"}, nil)
	descAdmitted   = prometheus.NewDesc("dibs_room_admitted", "Up to which place users are admitted.", []string{"campaign"}, nil)
)

// Describe implements prometheus.Collector.
func (r *Rooms) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRooms, descLotteries, descJoined, descLeft, descRegistered, descFailed, descWaiting, descAdmitted} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It looks at nothing but this
// process's memory.
func (r *Rooms) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	count := func(d *prometheus.Desc, v *atomic.Int64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v.Load()))
	}
	var waitingRooms []*waitingRoom
	r.waitingRooms.Range(func(_, v any) bool {
		waitingRooms = append(waitingRooms, v.(*waitingRoom))
		return true
	})
	lotteries := int64(0)
	r.lotteries.Range(func(_, _ any) bool {
		lotteries++
		return true
	})
	gauge(descRooms, int64(len(waitingRooms)))
	gauge(descLotteries, lotteries)
	count(descJoined, &r.counts.joined)
	count(descLeft, &r.counts.left)
	count(descRegistered, &r.counts.registered)
	count(descFailed, &r.counts.failed)
	slices.SortFunc(waitingRooms, func(a, b *waitingRoom) int { return cmp.Compare(b.campaign.Load().Number, a.campaign.Load().Number) })
	for _, h := range waitingRooms[:min(len(waitingRooms), maxShown)] {
		if p := h.seen.Load(); p != nil {
			id := h.campaign.Load().ID
			gauge(descWaiting, max(0, p.tail-p.admitted), id)
			gauge(descAdmitted, p.admitted, id)
		}
	}
}
