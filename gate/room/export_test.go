package room

import (
	"context"

	"github.com/dibs-dev/dibs"
)

// Tick does once what Start does again and again.
func (r *Rooms) Tick(held ...*dibs.Campaign) {
	r.tickRooms(context.Background(), held)
	r.tickLotteries(context.Background(), held)
}

// Idle waits until nothing is under way.
func (r *Rooms) Idle() { r.running.Wait() }

// Permutation is permutation.
func Permutation(seed Sum, n int64) []uint32 { return permutation(seed, n) }

// Turns is turns with what it goes by, for the model of the tests.
type Turns struct {
	turns
	Terms terms
}

// NewTurns returns turns of a room that starts at a time.
func NewTurns(c *dibs.Campaign) *Turns { return &Turns{newTurns(), termsOf(c)} }

// Join gives the next number.
func (t *Turns) Join() int64 { t.tail++; return t.tail }

// Open lets users in, or no longer.
func (t *Turns) Open(open bool) { t.Terms.open = open }

// Advance moves on.
func (t *Turns) Advance(nowMS int64) (admitted int64) {
	t.advance(nowMS, &t.Terms, Sum{1})
	return int64(t.admitted)
}

// GiveUp gives a place up.
func (t *Turns) GiveUp(place int64) { t.giveUp(place) }

// ShareStore has a node keep places where another one does.
func ShareStore(r, other *Rooms) { r.store = other.store }
