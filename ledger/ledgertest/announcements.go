package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/ledger"

	"github.com/dibs-dev/dibs/gate"
)

// follow has users follow the shop, each with the rank of its place in ranks, or 0.
func (f *fixture) follow(users []string, ranks ...int64) {
	f.t.Helper()
	list := make([]gate.Follower, len(users))
	for i, u := range users {
		list[i] = gate.Follower{User: u, Since: start}
		if i < len(ranks) {
			list[i].Rank = ranks[i]
		}
	}
	f.must(errOf(f.ledger().Audiences.Follow(f.t.Context(), "shop", list, true)))
}

// said joins values with spaces, to compare several at once.
func said(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

// announcement is one of the shop that is not stored yet. threshold is the
// number of followers up to which all are told at once, first how many are told
// at once above it, and rate how many of the others a second.
func announcement(id string, c *dibs.Campaign, threshold, first, rate int64) *announce.Announcement {
	return &announce.Announcement{
		ID: id, Campaign: c.Number, CampaignID: c.ID, Merchant: "shop", Message: "at noon 中午", State: announce.AnnouncementRunning,
		Threshold: threshold, First: first, Rate: rate, PacedAt: start, CreatedAt: start, UpdatedAt: start,
	}
}

// turn enqueues once, for an owner with a lease of a minute.
func (f *fixture) turn(l ledger.Ledger, id, owner string) (*announce.Announcement, int) {
	f.t.Helper()
	a, n, err := l.Announce.EnqueueFollowers(f.t.Context(), events.PushTurn{ID: id, Owner: owner, Lease: time.Minute})
	f.must(err)
	return a, n
}

// finish enqueues until the announcement is over.
func (f *fixture) finish(l ledger.Ledger, id, owner string) {
	f.t.Helper()
	limit := time.Now().Add(time.Minute)
	for time.Now().Before(limit) {
		if a, _ := f.turn(l, id, owner); a.State == announce.AnnouncementDone {
			return
		}
	}
	f.t.Fatal("the announcement does not end")
}

// pushed are the users of the events of announcements after a row of the feed.
// Each event is its announcement, its number from 1 on, and its users in order.
func (f *fixture) pushed(after int64) (events []string) {
	f.t.Helper()
	all, _ := f.news(f.ledger(), after, 10_000)
	for i := range all {
		if p := all[i].Push; p != nil {
			events = append(events, fmt.Sprintf("%s %d: %s", p.AnnouncementID, p.N, strings.Join(p.Users, " ")))
		}
	}
	return events
}

// testAnnouncementAtOnce announces to few followers: all of them at once, in
// one event. The followers at the time when the announcement is stored are told: users
// who follow later are not, and those who have left are not counted. A
// campaign has one active announcement at a time, so that no user is told
// twice.
func testAnnouncementAtOnce(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	// Nobody follows yet, so there is nothing to announce.
	refusal := l.Announce.InsertAnnouncement(ctx, announcement("none", c, 10, 0, 1))
	wants(t, "a merchant without followers", refusal, dibs.ErrInvalid)
	f.follow([]string{"ann", "bob", "cid"})
	f.must(errOf(l.Audiences.Follow(ctx, "shop", []gate.Follower{{User: "bob"}}, false)))
	a := announcement("a", c, 2, 1, 1)
	f.must(l.Announce.InsertAnnouncement(ctx, a))
	same(t, "followers", a.Followers, 2)
	wants(t, "the same id", l.Announce.InsertAnnouncement(ctx, announcement("a", c, 2, 1, 1)), dibs.ErrAlreadyExists)
	wants(t, "another one meanwhile", l.Announce.InsertAnnouncement(ctx, announcement("b", c, 2, 1, 1)), dibs.ErrInvalidState)
	same(t, "running", try(l.Announce.RunningAnnouncements(ctx, 10)).must(t), []announce.Announcement{*a})
	// Followers who come later are not told.
	f.follow([]string{"dan", "bob"})
	f.finish(l, "a", "node")
	same(t, "events", f.pushed(0), []string{"a 1: ann cid"})
	got := try(l.Announce.Announcement(ctx, "a")).must(t)
	same(t, "state", said(got.State, got.Enqueued, got.Events, got.FinishedAt.IsZero()), "done 2 1 false")
	// A node that was late finds the announcement done and enqueues nothing.
	_, _, err := l.Announce.EnqueueFollowers(ctx, events.PushTurn{ID: "a", Owner: "node", Lease: time.Minute})
	wants(t, "more of what is done", err, announce.ErrPushTaken)
	pushes, last, err := l.Announce.Pushes(ctx, 0, 10)
	f.must(err)
	same(t, "the pushes to clients", pushes, []events.Push{{Announced: events.Announced{
		AnnouncementID: "a", CampaignID: "c", Merchant: "shop", Kind: dibs.Sale, Title: c.Title, Message: "at noon 中午",
		StartsAt: c.StartsAt, EndsAt: c.EndsAt,
	}, N: 1, Users: []string{"ann", "cid"}}})
	// Untaken counts users in rows after a place: the event's own row, and none
	// after it.
	for after, want := range map[int64]int64{last - 1: 2, last: 0} {
		same(t, "untaken", try(l.Announce.Untaken(ctx, "a", after)).must(t), want)
	}
	// The feed forgets its rows, and with them which are of announcements.
	f.must(errOf(l.Events.TrimFeed(ctx, time.Now().Add(time.Hour), time.Hour)))
	same(t, "untaken of a feed that was trimmed", try(l.Announce.Untaken(ctx, "a", 0)).must(t), 0)
	f.must(l.Announce.InsertAnnouncement(ctx, announcement("b", c, 9, 1, 1)))
	list := try(l.Announce.AnnouncementsOf(ctx, c.Number, dibs.Page{Limit: 1})).must(t)
	same(t, "the newest", list.Items[0].ID, "b")
	list = try(l.Announce.AnnouncementsOf(ctx, c.Number, dibs.Page{Limit: 1, Cursor: list.NextCursor})).must(t)
	same(t, "the older", list.Items[0].ID+list.NextCursor, "a")
}

// testAnnouncementQueue announces to more followers than the threshold: the
// first by rank are told at once, the others by the queue, each of them once,
// whatever changes meanwhile. A user who leaves before their turn is not told,
// and one who follows again counts as a new follower, who came too late.
func testAnnouncementQueue(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	f.follow([]string{"u1", "u2", "u3", "u4", "u5", "u6", "u7"}, 0, 3, 0, 9, 3, 0, 0)
	a := announcement("a", c, 6, 3, 1000)
	f.must(l.Announce.InsertAnnouncement(ctx, a))
	// The first are chosen: a rank that changes now does not count. One of them, and
	// one of the others, follow no longer; one does anew.
	f.follow([]string{"u1", "u4", "u2"}, 99, 0, 0)
	for _, user := range []string{"u5", "u6"} {
		f.must(errOf(l.Audiences.Follow(ctx, "shop", []gate.Follower{{User: user}}, false)))
	}
	f.follow([]string{"u6"})
	a, n := f.turn(l, "a", "node")
	same(t, "the first", said(n, a.FirstDone, a.State), "2 true running")
	same(t, "events of the first", f.pushed(0), []string{"a 1: u2 u4"})
	f.finish(l, "a", "node")
	told := f.pushed(0)
	var users []string
	for _, e := range told[1:] {
		users = append(users, strings.Fields(e)[2:]...)
	}
	same(t, "the others, those who have followed longest first", users, []string{"u1", "u3", "u7"})
	got := try(l.Announce.Announcement(ctx, "a")).must(t)
	same(t, "enqueued", fmt.Sprint(got.Followers, got.Enqueued, got.Events), fmt.Sprint(7, 5, len(told)))
}

// testAnnouncementMoves pauses, resumes and cancels an announcement, each only
// from a state that allows it. Moving to the state that it has already is a
// repeat and no error. Only a running announcement enqueues; one that is
// cancelled never runs again, and another one may follow it.
func testAnnouncementMoves(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	f.follow(values("u", 5))
	wants(t, "what there is not",
		errOf(l.Announce.MoveAnnouncement(ctx, "a", announce.AnnouncementPaused, "", start)), dibs.ErrNotFound)
	f.must(l.Announce.InsertAnnouncement(ctx, announcement("a", c, 2, 2, 1)))
	// runs says whether followers may be enqueued in the state that the step
	// leaves.
	for _, step := range []struct {
		to   announce.AnnouncementState
		err  error
		runs bool
	}{
		{announce.AnnouncementPaused, nil, false},
		{announce.AnnouncementPaused, nil, false},
		{announce.AnnouncementRunning, nil, true},
		{announce.AnnouncementCancelled, nil, false},
		{announce.AnnouncementCancelled, nil, false},
		{announce.AnnouncementRunning, dibs.ErrInvalidState, false},
		{announce.AnnouncementPaused, dibs.ErrInvalidState, false},
	} {
		wants(t, "to "+string(step.to),
			errOf(l.Announce.MoveAnnouncement(ctx, "a", step.to, "why", start.Add(time.Second))), step.err)
		_, _, err := l.Announce.EnqueueFollowers(ctx, events.PushTurn{ID: "a", Owner: "node", Lease: time.Minute})
		if step.runs != (err == nil) || err != nil && !errors.Is(err, announce.ErrPushTaken) {
			t.Errorf("enqueueing what is to be %s: %v", step.to, err)
		}
	}
	got := try(l.Announce.Announcement(ctx, "a")).must(t)
	same(t, "the cancelled one", said(got.State, got.Why, got.Enqueued, got.FinishedAt.Equal(start.Add(time.Second))), "cancelled why 2 true")
	f.must(l.Announce.InsertAnnouncement(ctx, announcement("b", c, 9, 0, 1)))
}

// testAnnouncementRace lets several processes enqueue. One has the lease, and
// the others are refused; but a lease may end under a slow process, so it must
// not be what keeps a follower from being told twice. The place up to which
// followers are enqueued moves in the transaction that writes the events, and
// so each follower is enqueued once also when nobody's lease holds.
func testAnnouncementRace(t *testing.T, f *fixture) {
	ctx := t.Context()
	ledgers := []ledger.Ledger{f.ledger(), f.open(), f.open()}
	c := f.insert(campaign("c", 10))
	users := values("u", 12_300)
	f.follow(users)
	f.must(ledgers[0].Announce.InsertAnnouncement(ctx, announcement("a", c, 20_000, 100, 1)))
	// A turn is bounded, so that its transaction is short.
	a, n := f.turn(ledgers[0], "a", "one")
	same(t, "the first turn", fmt.Sprint(n, a.Enqueued, a.Events), fmt.Sprint(announce.PushMost, announce.PushMost, announce.PushMost/announce.PushBatch))
	_, _, err := ledgers[1].Announce.EnqueueFollowers(ctx, events.PushTurn{ID: "a", Owner: "two", Lease: time.Minute})
	wants(t, "a turn of another process", err, announce.ErrPushTaken)
	// Conflicts and passing faults are tried again, as the service does.
	f.together(len(ledgers), func(i int) error {
		for {
			// The lease is over at once, and all of them say that they are
			// the same.
			a, _, err := ledgers[i].Announce.EnqueueFollowers(ctx, events.PushTurn{ID: "a", Owner: "one"})
			switch {
			case errors.Is(err, announce.ErrPushTaken), err == nil && a.State == announce.AnnouncementDone:
				return nil
			case err != nil && !errors.Is(err, dibs.ErrConflict) && !errors.Is(err, dibs.ErrUnavailable):
				return err
			}
		}
	})
	// The events are numbered without a gap, whichever process wrote them.
	var told []string
	for i, e := range f.pushed(0) {
		fields := strings.Fields(e)
		same(t, "the event's number", fields[1], fmt.Sprintf("%d:", i+1))
		told = append(told, fields[2:]...)
	}
	slices.Sort(told)
	slices.Sort(users)
	if !slices.Equal(told, users) {
		t.Errorf("%d users are told of %d", len(told), len(users))
	}
}
