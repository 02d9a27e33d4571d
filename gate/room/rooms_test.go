package room_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"
	"github.com/dibs-dev/dibs/internal/seal"
	"github.com/dibs-dev/dibs/ledger/sqlledger"

	"github.com/dibs-dev/dibs/gate"
)

func fifo(rate int64) dibs.RoomSpec { return dibs.RoomSpec{Mode: dibs.FIFO, Rate: rate} }

// A crowd comes at once, comes back, and again after a restart: everybody has
// one place, nobody another's, and it stays.
func TestPlacesAreUniqueAndStay(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-hour)}
	c := campaign(t, l, "phone", fifo(1))
	const people = 200
	crowd := func(r *room.Rooms) []int64 {
		places := make([]int64, people)
		var wg sync.WaitGroup
		for i := range people {
			wg.Go(func() {
				v, err := r.Join(t.Context(), c, user(i))
				if err != nil {
					t.Error(err)
				}
				places[i] = v.Place
			})
		}
		wg.Wait()
		return places
	}
	first := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	places := crowd(first)
	seen := make(map[int64]bool)
	for i, p := range places {
		if p < 1 || p > people || seen[p] {
			t.Fatalf("%s has place %d", user(i), p)
		}
		seen[p] = true
	}
	first.Close()
	second := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for i, p := range crowd(second) {
		if p != places[i] {
			t.Fatalf("%s had place %d, and has %d after a restart", user(i), places[i], p)
		}
	}
	if v := join(t, second, c, "late"); v.Place != people+1 || v.Position != people+1 || v.Waiting != people+1 || v.State != gate.PlaceWaiting {
		t.Fatalf("who comes last has %+v", v)
	}
	_, err := second.Place(t.Context(), c, "nobody")
	fails(t, err, dibs.NotFound)
}

// Users who were admitted before a restart still are, and the time in which there was
// no process lets nobody in but for a moment's worth.
func TestTurnsGoOnAfterARestart(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	c := campaign(t, l, "phone", fifo(10))
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for i := range 100 {
		join(t, r, c, user(i))
	}
	for s := range 6 {
		at.set(noon.Add(time.Duration(s) * time.Second))
		r.Tick(c)
	}
	if v := place(t, r, c, user(0)); v.AdmittedUpTo != 60 || v.State != gate.PlaceAdmitted {
		t.Fatalf("after 5 s at 10/s and a burst of 10: %+v", v)
	}
	r.Close()
	at.pass(time.Minute)
	v := place(t, newRooms(t, room.Config{Ledger: l, Now: at.Now}), c, user(99))
	if v.AdmittedUpTo < 60 || v.AdmittedUpTo > 80 {
		t.Fatalf("after a minute without a process: admitted up to %d, it was 60", v.AdmittedUpTo)
	}
}

func TestAShuffledRoom(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	spec := dibs.RoomSpec{Mode: dibs.Shuffle, Rate: 10, OpensAt: noon.Add(-time.Minute)}
	c := campaign(t, l, "phone", spec)
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	const early = 100
	for i := range early {
		if v := join(t, r, c, user(i)); v.State != gate.PlaceArrived || v.Place != 0 || v.Position != 0 || v.Admission != "" {
			t.Fatalf("before the start, %s sees %+v", user(i), v)
		}
	}
	at.set(noon)
	// The first who looks learns an order that holds, though nothing is told after it.
	before := place(t, r, c, user(7)).Place
	r.Close()
	r = newRooms(t, room.Config{Ledger: l, Now: at.Now})
	if v := place(t, r, c, user(7)); v.Place != before || before == 0 {
		t.Fatalf("place %d, and %d after a restart", before, v.Place)
	}
	late := join(t, r, c, "late")
	if late.Place != early+1 {
		t.Fatalf("who comes after the start has place %d, want %d", late.Place, early+1)
	}
	places, moved := map[int64]bool{}, 0
	for i := range early {
		v := join(t, r, c, user(i))
		if places[v.Place] || v.Place < 1 || v.Place > early {
			t.Fatalf("%s has place %d", user(i), v.Place)
		}
		if places[v.Place] = true; v.Place != int64(i)+1 {
			moved++
		}
	}
	if moved < early/2 {
		t.Errorf("%d of %d have another place than by arrival", moved, early)
	}
}

func TestWhoLeavesMakesRoom(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	c := campaign(t, l, "phone", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: 2})
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for i := range 10 {
		join(t, r, c, user(i))
	}
	for _, u := range []string{user(1), user(2), user(2), "nobody"} {
		must(t, r.Leave(t.Context(), c, u))
	}
	_, err := r.Place(t.Context(), c, user(1))
	fails(t, err, dibs.NotFound)
	at.set(noon)
	// Two at once: the second and the third have left, so that the fourth is in.
	if v := place(t, r, c, user(3)); v.State != gate.PlaceAdmitted || v.AdmittedUpTo != 4 {
		t.Errorf("%+v", v)
	}
	// A user who comes back is the last.
	if v := join(t, r, c, user(1)); v.Place != 11 {
		t.Errorf("who comes back has place %d, want 11", v.Place)
	}
	r.Close()
	again := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	if v := place(t, again, c, user(1)); v.Place != 11 || v.AdmittedUpTo != 4 {
		t.Errorf("after a restart: %+v", v)
	}
}

// One user who comes and leaves again and again does not fill the room, and takes
// no more than two places, after a restart either.
func TestComingAndLeavingTakesNoPlaces(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	c := campaign(t, l, "phone", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Max: 2})
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	join(t, r, c, "ann")
	for want := int64(2); want <= 3; want++ {
		if v := join(t, r, c, "eve"); v.Place != want {
			t.Errorf("place %d, want %d", v.Place, want)
		}
		must(t, r.Leave(t.Context(), c, "eve"))
		r.Close()
		r = newRooms(t, room.Config{Ledger: l, Now: at.Now})
	}
	for range 3 {
		_, err := r.Join(t.Context(), c, "eve")
		fails(t, err, dibs.LimitReached)
		must(t, r.Leave(t.Context(), c, "eve"))
		_, err = r.Place(t.Context(), c, "eve")
		fails(t, err, dibs.NotFound)
	}
	if v := join(t, r, c, "bob"); v.Place != 4 {
		t.Errorf("the next has place %d, want 4", v.Place)
	}
	_, err := r.Join(t.Context(), c, "one too many")
	fails(t, err, dibs.Overloaded)
}

// TestAdmissionsUnderANewKey: the key was changed, and a user asks again. The answer is an admission under the new key,
// even if the earlier admission has much of its time left.
func TestAdmissionsUnderANewKey(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon}
	c := campaign(t, l, "phone", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, AdmitFor: dibs.Duration(hour)})
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	before := join(t, r, c, "ann").Admission
	must(t, r.SetKey([]byte("another key of the tests, 32 by+"), noon.Add(time.Minute)))
	after := place(t, r, c, "ann").Admission
	for _, passes := range []bool{true, false} {
		if _, ok := claims(r, c, "ann", before); ok != passes {
			t.Errorf("at %s the admission of the key before passes: %v", at.Now(), ok)
		}
		if _, ok := claims(r, c, "ann", after); !ok {
			t.Errorf("at %s the one that ann got by asking again does not pass", at.Now())
		}
		at.pass(time.Minute)
	}
}

// idle is a ledger that keeps nothing: for the time bubble of synctest.
type idle struct{ gate.RoomLedger }

func (idle) SavedRoomOf(context.Context, uint32) (*gate.SavedRoom, error) {
	return nil, dibs.ErrNotFound
}
func (idle) SavePlaces(context.Context, gate.SavedRoom, []gate.SavedPlace) error { return nil }
func (idle) TrimRooms(context.Context, time.Time) error                          { return nil }

// TestAdmissionRate runs a room by the clock, with those who watch.
func TestAdmissionRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(time.Minute)
		c := &dibs.Campaign{
			Number: 1, ID: "phone", StartsAt: start, EndsAt: start.Add(hour), State: dibs.Published, Version: 1,
			Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 30, Per: dibs.Duration(time.Minute), Burst: 1}},
		}
		r := newRooms(t, room.Config{Ledger: idle{}})
		now := &atomic.Pointer[dibs.Campaign]{}
		now.Store(c)
		r.Start(func() []*dibs.Campaign { return []*dibs.Campaign{now.Load()} })
		var told []gate.RoomProgress
		stop := r.Watch(func(p gate.RoomProgress) { told = append(told, p) })
		for i := range 40 {
			join(t, r, c, user(i))
		}
		// The twentieth: a minute to the start, one at once, and 19 at one in 2 s.
		v := place(t, r, c, user(19))
		if want := time.Minute + 38*time.Second; time.Duration(v.Estimate) != want {
			t.Errorf("the estimate is %s, want %s", time.Duration(v.Estimate), want)
		}
		<-time.After(time.Until(start.Add(38*time.Second - time.Millisecond)))
		if v := place(t, r, c, user(19)); v.State != gate.PlaceWaiting || v.Position != 1 {
			t.Errorf("a moment before: %+v", v)
		}
		<-time.After(time.Millisecond)
		if v := place(t, r, c, user(19)); v.State != gate.PlaceAdmitted || v.Admission == "" {
			t.Errorf("at the estimated time: %+v", v)
		}
		// While it is paused nobody is let in.
		now.Store(changed(c, func(c *dibs.Campaign) { c.State = dibs.PausedState }))
		<-time.After(20 * time.Second)
		resumed := changed(now.Load(), func(c *dibs.Campaign) { c.State, c.Gate.Room.Rate = dibs.Published, 60 })
		now.Store(resumed)
		if v := place(t, r, resumed, user(20)); v.AdmittedUpTo != 20 {
			t.Errorf("after a pause: up to %d, want 20", v.AdmittedUpTo)
		}
		<-time.After(5 * time.Second)
		if v := place(t, r, resumed, user(20)); v.AdmittedUpTo != 25 {
			t.Errorf("at the new rate of 1/s: up to %d after 5 s, want 25", v.AdmittedUpTo)
		}
		stop()
		r.Close()
		for i := 1; i < len(told); i++ {
			if told[i].AdmittedUpTo <= told[i-1].AdmittedUpTo || told[i].AdmittedUpTo+told[i].Waiting != 40 {
				t.Errorf("told %+v after %+v", told[i], told[i-1])
			}
		}
		if len(told) < 20 || told[0].CampaignID != "phone" || told[0].PerSecond != 0.5 {
			t.Errorf("told %d times, first %+v", len(told), told)
		}
	})
}

func TestOnlyTheAdmittedPass(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-time.Minute)}
	c := campaign(t, l, "phone", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: 1, AdmitFor: dibs.Duration(time.Minute)})
	other := campaign(t, l, "other", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: 1})
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for _, u := range []string{"ann", "bob"} {
		join(t, r, c, u)
		join(t, r, other, u)
	}
	refused := func(when string, c *dibs.Campaign, user, admission string, want dibs.Reason) dibs.Result {
		t.Helper()
		res, passed := claims(r, c, user, admission)
		if passed || res.Outcome != want {
			t.Errorf("%s: passed %v, %s, want %s", when, passed, res.Outcome, want)
		}
		return res
	}
	refused("before the start", c, "ann", "", dibs.NotStarted)
	at.set(noon)
	ann := join(t, r, c, "ann")
	if ann.Admission == "" || !ann.AdmissionExpiresAt.Equal(noon.Add(time.Minute)) || ann.Position != 0 {
		t.Fatalf("the first is %+v", ann)
	}
	if res, passed := claims(r, c, "ann", ann.Admission); !passed {
		t.Fatalf("the first is refused: %+v", res)
	}
	bob := join(t, r, c, "bob")
	if bob.Admission != "" || bob.Position != 1 || time.Duration(bob.Estimate) != time.Second {
		t.Fatalf("the second is %+v", bob)
	}
	if res := refused("it is not their turn", c, "bob", "", dibs.Waiting); res.Place != 1 || res.RetryAfter < time.Second {
		t.Errorf("bob is told place %d, come back after %s", res.Place, res.RetryAfter)
	}
	refused("another's admission", c, "bob", ann.Admission, dibs.Waiting)
	refused("another campaign's", other, "ann", ann.Admission, dibs.Waiting)
	refused("who never came", c, "eve", "", dibs.Waiting)
	refused("a ticket is no admission", c, "ann", seal.New(key, "ticket").Seal(c.Number, "ann", noon.Add(hour)), dibs.Waiting)
	refused("a forged one", c, "ann", seal.New([]byte("a key that somebody made up here"), "admission").Seal(c.Number, "ann", noon.Add(hour)), dibs.Waiting)
	at.pass(time.Minute)
	refused("an old one", c, "ann", ann.Admission, dibs.Waiting)
	if v := place(t, r, c, "ann"); v.Admission == "" || v.Admission == ann.Admission {
		t.Errorf("renewed as %+v", v)
	} else if _, passed := claims(r, c, "ann", v.Admission); !passed {
		t.Error("a renewed admission is refused")
	}
	refused("paused", changed(c, func(c *dibs.Campaign) { c.State = dibs.PausedState }), "ann", ann.Admission, dibs.Paused)
	at.set(c.EndsAt)
	refused("over", c, "ann", ann.Admission, dibs.Ended)
	if v := place(t, r, c, "ann"); v.Admission != "" {
		t.Errorf("admitted when it is over: %+v", v)
	}
	_, err := r.Join(t.Context(), c, "eve")
	fails(t, err, dibs.Ended)
}

// A glance waits for nothing: who is not known here is looked up for the next one.
func TestGlances(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon}
	c := campaign(t, l, "phone", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: 1})
	first := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for _, u := range []string{"ann", "bob"} {
		join(t, first, c, u)
	}
	if v, ok := first.Glance(c, "bob"); !ok || v.Position != 1 || v.Admission != "" {
		t.Errorf("%+v, %v", v, ok)
	}
	first.Close()
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	if v, ok := r.Glance(c, "ann"); ok {
		t.Errorf("a node that knows nothing yet tells %+v", v)
	}
	var v gate.PlaceView
	waitFor(t, func() (ok bool) { v, ok = r.Glance(c, "ann"); return ok })
	if _, passed := claims(r, c, "ann", v.Admission); !passed || v.Place != 1 {
		t.Errorf("%+v", v)
	}
	if _, ok := r.Glance(c, "eve"); ok {
		t.Error("who never came has a place")
	}
	join(t, r, c, "eve")
	if v, ok := r.Glance(c, "eve"); !ok || v.Place != 3 {
		t.Errorf("%+v, %v", v, ok)
	}
}

func TestWhenARoomTakesNobody(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-hour)}
	c := campaign(t, l, "phone", dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Max: 2, OpensAt: noon.Add(-time.Minute)})
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	_, err := r.Join(t.Context(), c, "ann")
	fails(t, err, dibs.NotStarted)
	at.set(noon.Add(-time.Minute))
	join(t, r, c, "ann")
	join(t, r, c, "bob")
	_, err = r.Join(t.Context(), c, "eve")
	fails(t, err, dibs.Overloaded)
	join(t, r, c, "ann")
	_, err = r.Join(t.Context(), changed(c, func(c *dibs.Campaign) { c.State = dibs.Draft }), "ann")
	fails(t, err, dibs.NotFound)
	_, err = r.Join(t.Context(), changed(c, func(c *dibs.Campaign) { c.Gate = nil }), "ann")
	fails(t, err, dibs.NotFound)
}

// broken is a ledger that does not save places for a while.
type broken struct {
	*sqlledger.Ledger
	fail atomic.Bool
}

func (b *broken) SavePlaces(ctx context.Context, r gate.SavedRoom, p []gate.SavedPlace) error {
	if b.fail.Load() {
		return errIO
	}
	return b.Ledger.SavePlaces(ctx, r, p)
}

// Nobody is told a place that is not kept. A user who comes again gets the place that
// they would have had.
func TestAPlaceIsKeptBeforeItIsTold(t *testing.T) {
	l, at := &broken{Ledger: newLedger(t)}, &clock{now: noon.Add(-hour)}
	c := campaign(t, l.Ledger, "phone", fifo(1))
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	join(t, r, c, "ann")
	l.fail.Store(true)
	for _, u := range []string{"bob", "eve"} {
		_, err := r.Join(t.Context(), c, u)
		fails(t, err, dibs.Unavailable)
	}
	l.fail.Store(false)
	if v := join(t, r, c, "eve"); v.Place != 3 {
		t.Errorf("place %d, want 3", v.Place)
	}
	r.Close()
	again := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for i, u := range []string{"ann", "bob", "eve"} {
		if v := place(t, again, c, u); v.Place != int64(i)+1 {
			t.Errorf("%s has place %d after a restart", u, v.Place)
		}
	}
}

func TestConfigOfRooms(t *testing.T) {
	for name, cfg := range map[string]room.Config{"no ledger": {Key: key}, "a short key": {Ledger: idle{}, Key: key[:8]}} {
		if _, err := room.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func BenchmarkPass(b *testing.B) {
	at := &clock{now: noon}
	c := &dibs.Campaign{Number: 1, ID: "phone", StartsAt: noon, EndsAt: noon.Add(hour), State: dibs.Published, Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{
		Mode: dibs.FIFO, Rate: 1, Burst: 1,
	}}}
	r := newRooms(b, room.Config{Ledger: idle{}, Now: at.Now})
	admitted := join(b, r, c, "ann").Admission
	join(b, r, c, "bob")
	for name, req := range map[string]dibs.ClaimRequest{
		"admitted": {UserID: "ann", Admission: admitted}, "waiting": {UserID: "bob"}, "forged": {UserID: "bob", Admission: admitted},
	} {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Pass(context.Background(), c, &req)
			}
		})
	}
}
