package announce_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/gate/audience"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// told are the delivery ids of all events of announcements, with how often each
// was told.
func told(r *testnode.Rig) map[string]int {
	r.Helper()
	found := map[string]int{}
	for after := int64(0); ; {
		list, last, err := r.Node.Events.After(r.Context(), after, 10_000)
		if err != nil {
			r.Fatal(err)
		}
		for i := range list {
			if list[i].Type != events.EventTypeAnnounced {
				continue
			}
			var data events.PushEventData
			if err := json.Unmarshal(list[i].Data, &data); err != nil {
				r.Fatal(err)
			}
			for _, one := range data.Recipients {
				if one.DeliveryID != events.DeliveryID(data.AnnouncementID, one.UserID) {
					r.Errorf("%+v", one)
				}
				found[one.DeliveryID]++
			}
		}
		if last == after {
			return found
		}
		after = last
	}
}

// announcementIs waits until an announcement is in a state.
func announcementIs(r *testnode.Rig, id string, want announce.AnnouncementState) announce.AnnouncementView {
	r.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		v, err := r.Node.Announcements.Get(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		if v.State == want {
			return v
		}
		select {
		case <-tick.C:
		case <-limit:
			r.Fatalf("the announcement is %+v, not %s", v, want)
		}
	}
}

func followed(r *testnode.Rig, merchant string, n int) {
	r.Helper()
	var file strings.Builder
	for i := range n {
		fmt.Fprintf(&file, "u%d,%d\n", i, i%10)
	}
	v, err := audience.ImportFollowers(r.Context(), r.Node.Ledger, merchant, strings.NewReader(file.String()), nil)
	if err != nil || v.Followers != int64(n) {
		r.Fatalf("%+v, %v", v, err)
	}
}

func TestAnnounce(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{Push: announce.PushConfig{Threshold: 1200, First: 100, Rate: 100_000}})
	followed(r, "small", 1200)
	followed(r, "large", 1201)
	r.Publish(r.Sale("phone", 10))
	s := r.Node.Service
	heard := make(chan *events.Push, 100)
	stop := s.Announcements.Watch(func(p *events.Push) { heard <- p })
	defer stop()
	for _, merchant := range []string{"small", "large"} {
		a, err := s.Announcements.Create(t.Context(), "phone", announce.AnnouncementSpec{ID: merchant, Merchant: merchant, Message: "at noon"})
		if err != nil || a.State != announce.AnnouncementRunning {
			t.Fatal(a, err)
		}
		v := announcementIs(r, merchant, announce.AnnouncementDone)
		if v.Enqueued != v.Followers || v.Estimate != 0 || v.FinishedAt == nil {
			t.Errorf("%+v", v)
		}
	}
	numbersAre(r, announce.PushMetrics{AtOnce: 1200 + 100, Queued: 1101})
	// Forms forecast by these.
	if v, err := s.Announcements.Threshold(t.Context(), 99); err != nil || v.Threshold != 1200 || v.First != 100 || v.Rate != 100_000 {
		t.Errorf("the settings in use: %+v, %v", v, err)
	}
	told := told(r)
	for id, n := range told {
		if n != 1 {
			t.Errorf("%s was told %d times", id, n)
		}
	}
	if len(told) != 1200+1201 {
		t.Errorf("%d are told", len(told))
	}
	limit := time.After(time.Minute)
	for users := 0; users < 1200+1201; {
		select {
		case p := <-heard:
			if users += len(p.Users); p.Title != "phone" || p.Message != "at noon" || len(p.Users) > announce.PushBatch {
				t.Errorf("%+v", p)
			}
		case <-limit:
			t.Fatalf("%d users were heard of", users)
		}
	}
}

// Announcements that take hours do not keep others from being told at once.
func TestManySlowAnnouncements(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{Push: announce.PushConfig{Threshold: 50, First: 1, Rate: 1}})
	announced := func(merchant string, followers int) {
		r.Publish(r.Sale("of-"+merchant, 10))
		followed(r, merchant, followers)
		if _, err := r.Node.Announcements.Create(t.Context(), "of-"+merchant, announce.AnnouncementSpec{ID: merchant, Merchant: merchant}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		announced(fmt.Sprint("large-", i), 1000)
	}
	announced("small", 50)
	announcementIs(r, "small", announce.AnnouncementDone)
	for i := range 6 {
		if v := announcementIs(r, fmt.Sprint("large-", i), announce.AnnouncementRunning); v.Enqueued == v.Followers {
			t.Errorf("%+v", v)
		}
	}
}

// TestMessagesHaveNoControls: a message goes to terminals, pages and webhooks of followers: it may have several lines, and
// nothing that changes how the text around it is shown.
func TestMessagesHaveNoControls(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	followed(r, "shop", 1)
	r.Publish(r.Sale("phone", 10))
	for what, message := range map[string]string{
		"an escape": "a\x1b[2J", "C1": "a\u009b2J", "an override": "a\u202eb", "an isolate": "a\u2066b", "bytes that are no text": "a\xff", "a long one": strings.Repeat("长", announce.MaxMessage+1),
	} {
		_, err := r.Node.Announcements.Create(t.Context(), "phone", announce.AnnouncementSpec{Merchant: "shop", Message: message})
		var e *dibs.Error
		if !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].Field != "/message" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.Node.Announcements.Create(t.Context(), "phone", announce.AnnouncementSpec{Merchant: "shop", Message: "今天中午\n200 phones, עברית 👍🏽"}); err != nil {
		t.Errorf("two lines: %v", err)
	}
}

// numbersAre waits until the metrics of announcements are so.
func numbersAre(r *testnode.Rig, want announce.PushMetrics) {
	r.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		have := r.Node.Observe().Pushes
		if have == want {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			r.Fatalf("the metrics are %+v, want %+v", have, want)
		}
	}
}

func TestAnnounceRefused(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	s := r.Node.Service
	r.Publish(r.Sale("phone", 10))
	tell := func(campaign string, spec announce.AnnouncementSpec) error {
		_, err := s.Announcements.Create(t.Context(), campaign, spec)
		return err
	}
	r.Fails(tell("nothing", announce.AnnouncementSpec{Merchant: "shop"}), dibs.NotFound)
	for _, spec := range []announce.AnnouncementSpec{{}, {Merchant: "shop"}} {
		// None is named, and then one whom nobody follows.
		if e := r.Fails(tell("phone", spec), dibs.InvalidRequest); e.Faults[0].Field != "/merchant" {
			t.Errorf("%v", e)
		}
	}
	followed(r, "shop", 1000)
	zero, one := int64(0), int64(1)
	if e := r.Fails(tell("phone", announce.AnnouncementSpec{Merchant: "shop", Rate: &zero, Threshold: &zero, First: &one}), dibs.InvalidRequest); len(e.Faults) != 2 {
		t.Errorf("%v", e)
	}
	if _, err := s.Campaigns.Create(t.Context(), r.Sale("draft", 1)); err != nil {
		t.Fatal(err)
	}
	r.Fails(tell("draft", announce.AnnouncementSpec{Merchant: "shop"}), dibs.InvalidState)
	slow := announce.AnnouncementSpec{ID: "slow", Merchant: "shop", Threshold: &zero, Rate: &one}
	if err := tell("phone", slow); err != nil {
		t.Fatal(err)
	}
	slow.ID = ""
	if e := r.Fails(tell("phone", slow), dibs.InvalidState); !strings.Contains(e.Error(), "slow of this campaign is running") {
		t.Errorf("%v", e)
	}
	if _, err := s.Announcements.Pause(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	r.Fails(tell("phone", slow), dibs.InvalidState)
	if _, err := s.Announcements.Resume(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	// It ends with its campaign, and cannot be taken up again.
	if _, err := s.Campaigns.End(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	if v := announcementIs(r, "slow", announce.AnnouncementCancelled); !strings.Contains(v.Why, "over") {
		t.Errorf("%+v", v)
	}
	if _, err := s.Announcements.Resume(t.Context(), "slow"); !errors.Is(err, dibs.ErrInvalidState) {
		t.Errorf("resuming it: %v", err)
	}
	r.Fails(tell("phone", announce.AnnouncementSpec{Merchant: "shop"}), dibs.InvalidState)
}
