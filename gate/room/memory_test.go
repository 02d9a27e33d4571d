package room_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"

	"github.com/dibs-dev/dibs/gate"
)

// A user who has given a place up on one node gets no admission from another node that
// remembers them; a user who has not, gets it.
func TestLeftOnAnotherNode(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	c := campaign(t, l, "c", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 10, Burst: 10})
	one := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	other := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	room.ShareStore(other, one)
	for _, user := range []string{"ann", "bob"} {
		join(t, other, c, user)
		if _, ok := other.Glance(c, user); !ok {
			t.Fatalf("%s is not known where they have just come", user)
		}
	}
	must(t, one.Leave(context.Background(), c, "ann"))
	at.set(noon.Add(time.Minute))
	other.Tick(c)
	var v gate.PlaceView
	waitFor(t, func() (ok bool) {
		v, ok = other.Glance(c, "bob")
		return ok
	})
	if v.State != gate.PlaceAdmitted || v.Admission == "" {
		t.Errorf("bob: %+v", v)
	}
	// bob is asked for no earlier than ann.
	for range 3 {
		if v, ok := other.Glance(c, "ann"); ok {
			t.Errorf("ann, who has left: %+v", v)
		}
		at.pass(10 * time.Second)
	}
}

// However seldom places are told, who is admitted hears of it by the second time.
func TestSeldomGlances(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	c := campaign(t, l, "c", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 10, Burst: 10})
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	join(t, r, c, "ann")
	at.set(noon.Add(time.Minute))
	r.Tick(c)
	if v, ok := r.Glance(c, "ann"); ok {
		t.Errorf("before anybody asked whether ann is still there: %+v", v)
	}
	r.Idle()
	at.pass(30 * time.Second)
	if v, ok := r.Glance(c, "ann"); !ok || v.Admission == "" {
		t.Errorf("%+v, %v", v, ok)
	}
}

// Places stay in the ledger for a week after the end of their campaign, and one that is given a later end until then goes
// on with them.
func TestPlacesStayForAWeek(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon}
	c := campaign(t, l, "c", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1})
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for i := range 100 {
		join(t, r, c, user(i))
	}
	at.set(c.EndsAt.Add(6 * 24 * hour))
	r.Tick()
	later := changed(c, func(c *dibs.Campaign) { c.EndsAt = at.Now().Add(hour) })
	if v := place(t, r, later, user(99)); v.Place != 100 {
		t.Errorf("after six days the last one has place %d", v.Place)
	}
	at.pass(2 * 24 * hour)
	r.Tick()
	if left, err := l.SavedPlaces(t.Context(), c.Number, 0, 1); err != nil || len(left) != 0 {
		t.Errorf("after eight days %d places are left, %v", len(left), err)
	}
}

// holding is a ledger that saves places when it is told to.
type holding struct {
	idle
	save chan struct{}
}

func (l holding) SavePlaces(context.Context, gate.SavedRoom, []gate.SavedPlace) error {
	<-l.save
	return nil
}

func (holding) DropPlace(context.Context, uint32, int64) error { return nil }

// A user who leaves twice at once, as by a double click, gives one place up, and may
// come back.
func TestTwoLeavesAtOnceGiveOnePlaceUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(time.Minute)
		c := &dibs.Campaign{
			Number: 1, ID: "phone", StartsAt: start, EndsAt: start.Add(hour), State: dibs.Published, Version: 1,
			Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1}},
		}
		l := holding{save: make(chan struct{})}
		r := newRooms(t, room.Config{Ledger: l})
		var calls sync.WaitGroup
		comes := func(user string) {
			if _, err := r.Join(t.Context(), c, user); err != nil {
				t.Error(err)
			}
		}
		calls.Go(func() { comes("ann") })
		l.save <- struct{}{}
		calls.Wait()
		// While bob's place is saved, both calls wait: then both find ann's number.
		calls.Go(func() { comes("bob") })
		synctest.Wait()
		for range 2 {
			calls.Go(func() {
				if err := r.Leave(t.Context(), c, "ann"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(l.save)
		calls.Wait()
		if v := join(t, r, c, "ann"); v.Place != 3 {
			t.Errorf("ann comes back to place %d, want 3", v.Place)
		}
	})
}
