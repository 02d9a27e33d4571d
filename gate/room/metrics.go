package room

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/internal/metric"
)

// maxShown is how many rooms metrics tell of one by one, the newest.
// Each room is a series for as long as it is shown; more would burden whoever stores
// them.
const maxShown = 200

// roomCounts are what rooms count on this node.
type roomCounts struct {
	joined, left, registered, failed atomic.Int64
}

// descs describe the numbers.
var descs metric.Set

var (
	descRooms      = descs.New("dibs_rooms_open", "Waiting rooms that this node knows.")
	descLotteries  = descs.New("dibs_lotteries_open", "Lotteries that this node knows.")
	descJoined     = descs.New("dibs_room_joins_total", "Requests for a place, answered by this node, repeats counted.")
	descLeft       = descs.New("dibs_room_leaves_total", "Places that were given up on this node.")
	descRegistered = descs.New("dibs_lottery_registrations_total", "Registrations that this node took, repeats not counted.")
	descFailed     = descs.New("dibs_room_errors_total", "Looks at waiting rooms and lotteries in the background that failed.")
	descWaiting    = descs.New("dibs_room_waiting", "Users in the room who are not admitted yet.", "campaign")
	descAdmitted   = descs.New("dibs_room_admitted", "Up to which place users are admitted.", "campaign")
)

// Describe implements prometheus.Collector.
func (r *Rooms) Describe(out chan<- *prometheus.Desc) { descs.Describe(out) }

// Collect implements prometheus.Collector. It looks at nothing but this
// process's memory.
func (r *Rooms) Collect(out chan<- prometheus.Metric) {
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
	metric.Gauge(out, descRooms, int64(len(waitingRooms)))
	metric.Gauge(out, descLotteries, lotteries)
	metric.Count(out, descJoined, r.counts.joined.Load())
	metric.Count(out, descLeft, r.counts.left.Load())
	metric.Count(out, descRegistered, r.counts.registered.Load())
	metric.Count(out, descFailed, r.counts.failed.Load())
	slices.SortFunc(waitingRooms, func(a, b *waitingRoom) int { return cmp.Compare(b.campaign.Load().Number, a.campaign.Load().Number) })
	for _, h := range waitingRooms[:min(len(waitingRooms), maxShown)] {
		if p := h.seen.Load(); p != nil {
			id := h.campaign.Load().ID
			metric.Gauge(out, descWaiting, max(0, p.tail-p.admitted), id)
			metric.Gauge(out, descAdmitted, p.admitted, id)
		}
	}
}
