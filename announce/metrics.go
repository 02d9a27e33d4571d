package announce

import (
	"sync/atomic"
	"time"
)

// PushMetrics is what announcements come to: what this node did for them since
// it started, and how those stand that run, whichever node works on them.
type PushMetrics struct {
	// AtOnce and Queued count followers that this node enqueued, without and by the
	// queue. Skipped counts those who followed no longer when their turn came, once
	// their announcement is done; Errors the times that none could be enqueued.
	AtOnce, Queued, Skipped, Errors int64
	// Running is how many announcements run, pushesListed of them at most; Waiting
	// how many followers of these are not enqueued, and Rate how many a second leave
	// the queues.
	Running, Waiting, Rate int64
	// Still is how long the one has stood still that has done so for longest.
	Still time.Duration
}

// pushNumbers count what a node does for announcements.
//
// Each number is atomic by itself and only rises. Each look puts another pushesSeen into seen;
// one that is there does not change.
type pushNumbers struct {
	atOnce, queued, skipped, errors atomic.Int64
	// seen are those that ran when they were looked at last.
	seen atomic.Pointer[pushesSeen]
}

// pushesSeen is how announcements were when they were looked at.
type pushesSeen struct {
	running, waiting, rate int64
	// moved is when the one moved last that has stood still for longest.
	moved time.Time
}

// see notes how the announcements are that run.
func (n *pushNumbers) see(running []Announcement) {
	seen := &pushesSeen{running: int64(len(running))}
	for i := range running {
		a := &running[i]
		seen.waiting += max(a.Followers-a.Enqueued, 0)
		seen.rate += a.Rate
		if seen.moved.IsZero() || a.UpdatedAt.Before(seen.moved) {
			seen.moved = a.UpdatedAt
		}
	}
	n.seen.Store(seen)
}

// turn counts what came of a turn for an announcement, which is as it then is.
// The first by rank are all enqueued before the queue begins.
func (n *pushNumbers) turn(a *Announcement, followers int, err error) {
	switch {
	case err != nil:
		n.errors.Add(1)
	case a.Followers > a.Threshold && a.RestTo > 0:
		n.queued.Add(int64(followers))
	default:
		n.atOnce.Add(int64(followers))
	}
	if err == nil && a.State == AnnouncementDone {
		n.skipped.Add(max(a.Followers-a.Enqueued, 0))
	}
}

// metrics is a snapshot.
func (n *pushNumbers) metrics(now time.Time) PushMetrics {
	m := PushMetrics{AtOnce: n.atOnce.Load(), Queued: n.queued.Load(), Skipped: n.skipped.Load(), Errors: n.errors.Load()}
	if seen := n.seen.Load(); seen != nil {
		m.Running, m.Waiting, m.Rate = seen.running, seen.waiting, seen.rate
		if seen.running > 0 {
			m.Still = max(now.Sub(seen.moved), 0)
		}
	}
	return m
}
