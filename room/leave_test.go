package room_test

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/room"
)

// Who has given his place up on one node gets no admission from another one that
// remembers him; who has not, gets it.
func TestLeftOnAnotherNode(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	c := campaign(t, l, "c", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 10, Burst: 10})
	one := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	other := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	room.ShareStore(other, one)
	for _, user := range []string{"ann", "bob"} {
		join(t, other, c, user)
		if _, ok := other.Glance(c, user); !ok {
			t.Fatalf("%s is not known where she has just come", user)
		}
	}
	must(t, one.Leave(context.Background(), c, "ann"))
	at.set(noon.Add(time.Minute))
	other.Tick(c)
	var v dibs.PlaceView
	waitFor(t, func() (ok bool) {
		v, ok = other.Glance(c, "bob")
		return ok
	})
	if v.State != dibs.PlaceAdmitted || v.Admission == "" {
		t.Errorf("bob: %+v", v)
	}
	// He is asked for no earlier than she.
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
		t.Errorf("before anybody asked whether she is still there: %+v", v)
	}
	r.Idle()
	at.pass(30 * time.Second)
	if v, ok := r.Glance(c, "ann"); !ok || v.Admission == "" {
		t.Errorf("%+v, %v", v, ok)
	}
}
