package room

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
)

// noPlaces is a ledger that keeps no places, so that this process is measured alone. Any other
// call panics, since the embedded ledger is nil.
type noPlaces struct{ gate.RoomLedger }

func (noPlaces) SavedRoomOf(context.Context, uint32) (*gate.SavedRoom, error) {
	return nil, dibs.ErrNotFound
}
func (noPlaces) SavePlaces(context.Context, gate.SavedRoom, []gate.SavedPlace) error { return nil }

// TestMemoryOfPlaces: a place in a waiting room takes little memory, a room that is full takes
// no more of it, and a user has one place however often they ask.
func TestMemoryOfPlaces(t *testing.T) {
	const places, most = 200_000, 160
	m := newMemory(noPlaces{}, time.Now)
	c := &dibs.Campaign{Number: 1, State: dibs.Published, StartsAt: time.Now().Add(time.Hour), EndsAt: time.Now().Add(2 * time.Hour), Gate: &dibs.GateSpec{
		Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Max: places},
	}}
	ask := func(from, to int) (last int64) {
		for i := from; i < to; i++ {
			numbers, _, err := m.look(t.Context(), c, []ask{{user: fmt.Sprintf("user-%07d", i), join: true}})
			if err != nil {
				t.Fatal(err)
			}
			last = numbers[0]
		}
		return last
	}
	before := heap()
	if last := ask(0, places); last != places {
		t.Fatalf("the last place is %d", last)
	}
	full := heap()
	per := (full - before) / places
	t.Logf("%d bytes for a place of a user with an id of 12 characters", per)
	if per < 20 || per > most {
		t.Errorf("a place takes %d bytes", per)
	}
	if last := ask(places, 2*places); last != roomFull {
		t.Fatalf("beyond the bound a user gets %d", last)
	}
	if last := ask(0, 1000); last != 1000 {
		t.Fatalf("a user who asks again gets %d", last)
	}
	if after := heap(); after > full+full/10 {
		t.Errorf("a full room grew from %d to %d bytes", full, after)
	}
	runtime.KeepAlive(m)
}

// heap is what is in use after a collection, in bytes.
func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
