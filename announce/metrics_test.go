package announce

import (
	"errors"
	"testing"
	"time"
)

// Metrics count the users by how they were told, and those who never will be. An
// announcement that stands still shows by the time that passes.
func TestPushNumbers(t *testing.T) {
	now := time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	var n pushNumbers
	if m := n.metrics(now); m != (PushMetrics{}) {
		t.Errorf("before anything: %+v", m)
	}
	a := Announcement{Followers: 5000, Threshold: 1000, First: 100, Rate: 10, State: AnnouncementRunning, UpdatedAt: now.Add(-time.Minute)}
	n.turn(&a, 100, nil)
	a.FirstDone, a.RestTo = true, 600
	n.turn(&a, 500, nil)
	n.turn(&a, 0, errors.New("the database is away"))
	a.Enqueued = 600
	n.see([]Announcement{a, {Followers: 10, Rate: 5, UpdatedAt: now}})
	want := PushMetrics{AtOnce: 100, Queued: 500, Errors: 1, Running: 2, Waiting: 4410, Rate: 15, Still: time.Minute}
	if m := n.metrics(now); m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
	if m := n.metrics(now.Add(time.Hour)); m.Still != time.Hour+time.Minute {
		t.Errorf("an hour later, it stands still for %s", m.Still)
	}
	a.Enqueued, a.State = 4990, AnnouncementDone
	n.turn(&a, 0, nil)
	n.see(nil)
	want = PushMetrics{AtOnce: 100, Queued: 500, Skipped: 10, Errors: 1}
	if m := n.metrics(now); m != want {
		t.Errorf("at the end: %+v, want %+v", m, want)
	}
}
