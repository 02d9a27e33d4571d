package announce

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// The queue of an announcement is never faster than its rate, but for a second
// that it may make up for, and hardly slower while somebody asks often enough.
func TestPushKeepsItsRate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rate := range []int64{1, 7, 300, 999, 1000, 1001, 48_000} {
		begun := time.UnixMilli(1_800_000_000_000)
		a := &Announcement{Rate: rate, Followers: 1 << 40, FirstDone: true, PacedAt: begun, State: AnnouncementRunning}
		now := begun
		for range 2000 {
			now = now.Add(time.Duration(1+r.IntN(90)) * time.Millisecond)
			n := a.Allowance(now)
			if n > PushMost {
				t.Fatalf("%d at once", n)
			}
			a.Enqueue(n, 1, now)
			if most := int64(now.Sub(begun)/time.Millisecond)*rate/1000 + 1; a.Enqueued > most {
				t.Fatalf("at %d/s, %d after %v", rate, a.Enqueued, now.Sub(begun))
			}
		}
		if least := now.Sub(begun).Seconds() * float64(rate) * 0.9; float64(a.Enqueued) < least {
			t.Errorf("at %d/s, only %d after %v", rate, a.Enqueued, now.Sub(begun))
		}
		before := a.Enqueued
		now = now.Add(time.Hour)
		for n := 1; n > 0; {
			n = a.Allowance(now)
			a.Enqueue(n, 1, now)
		}
		if made := a.Enqueued - before; made > rate {
			t.Errorf("at %d/s, %d are made up for after an hour", rate, made)
		}
	}
}

// A clock that goes back, or the node's that began it and was ahead, stops no queue.
func TestPushAfterTheClockWentBack(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	a := &Announcement{Rate: 100, Followers: 1 << 40, FirstDone: true, PacedAt: now.Add(time.Hour), State: AnnouncementRunning}
	n := a.Allowance(now)
	if n < 1 || n > 100 {
		t.Fatalf("%d at once", n)
	}
	if a.Enqueue(n, 1, now); a.Allowance(now) != 0 || a.Allowance(now.Add(time.Second)) == 0 {
		t.Errorf("then %d at once, and %d a second later", a.Allowance(now), a.Allowance(now.Add(time.Second)))
	}
}

// An announcement whose turn is at once does not wait, and does not use the rate up.
func TestPushAtOnce(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for _, a := range []*Announcement{
		{Rate: 1, Followers: 9, Threshold: 9, FirstDone: true, PacedAt: now},
		{Rate: 1, Followers: 10, Threshold: 9, First: 2, PacedAt: now},
	} {
		if n := a.Allowance(now); n != PushMost || a.Pause() != 0 {
			t.Errorf("%d of %d, then a pause of %v", n, a.Followers, a.Pause())
		}
		if a.Enqueue(2, 1, now); !a.PacedAt.Equal(now) {
			t.Error("those who are told at once used the rate up")
		}
	}
}

func TestAnnouncementFaults(t *testing.T) {
	open := &dibs.Campaign{}
	followers := &dibs.Campaign{Gate: &dibs.GateSpec{Audience: &dibs.AudienceSpec{FollowersOf: "shop"}}}
	for _, c := range []struct {
		campaign *dibs.Campaign
		a        Announcement
		want     string
	}{
		{open, Announcement{ID: "a", Merchant: "shop", Threshold: 10, First: 10, Rate: 1}, ""},
		{followers, Announcement{ID: "a", Merchant: "shop", Rate: 1}, ""},
		{open, Announcement{ID: "a", Rate: 1}, "merchant is required"},
		{open, Announcement{ID: "a:b", Merchant: "a b", Rate: 1}, "id must be 1-64|merchant must be 1-64"},
		{followers, Announcement{ID: "a", Merchant: "other", Rate: 1}, "merchant must be shop"},
		{open, Announcement{ID: "a", Merchant: "shop", Threshold: 10, First: 11, Rate: 1}, "first must be at most the threshold, 10"},
		{open, Announcement{ID: "a", Merchant: "shop"}, "rate must be from 1 to 1000000"},
		{open, Announcement{ID: "a", Merchant: "shop", Threshold: -1, First: -2, Rate: MaxPushRate + 1}, "threshold must be from|first must be from|rate must be from"},
		{open, Announcement{ID: "a", Merchant: "shop", Threshold: -1, Rate: 1}, "threshold must be from"},
		{open, Announcement{ID: "a", Merchant: "shop", Rate: 1, Message: strings.Repeat("喂", MaxMessage+1)}, "message must be at most 1000"},
	} {
		fs := c.a.faults(c.campaign)
		var told error = dibs.Invalid(fs...)
		if c.want == "" {
			if len(fs) > 0 {
				t.Errorf("%+v: %v", c.a, told)
			}
			continue
		}
		parts := strings.Split(c.want, "|")
		if len(fs) != len(parts) {
			t.Errorf("%+v: %v, want %d faults", c.a, told, len(parts))
		}
		for _, part := range parts {
			if !strings.Contains(told.Error(), part) {
				t.Errorf("%+v: %v, want %q", c.a, told, part)
			}
		}
	}
	var e *dibs.Error
	if done := (&Announcement{State: AnnouncementDone}); true {
		if _, err := done.Become(AnnouncementPaused, "", time.Now()); !errors.As(err, &e) || e.Reason != dibs.InvalidState {
			t.Errorf("pausing what is done: %v", err)
		}
	}
}
