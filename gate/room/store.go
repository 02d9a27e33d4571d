package room

import (
	"context"
	"math"
	"time"

	"github.com/dibs-dev/dibs"
)

// store keeps the numbers of users in the order of their arrival, one order for
// all nodes, and up to which place users are admitted.
type store interface {
	// look tells users their numbers, and how far the room of c is.
	look(ctx context.Context, c *dibs.Campaign, asks []ask) ([]int64, progress, error)
	// leave gives a user's number up. place is 0 when nobody is to be let in for it.
	leave(ctx context.Context, c *dibs.Campaign, user string, number, place int64) error
	// tick keeps what is only in this process until now.
	tick(ctx context.Context, c *dibs.Campaign) error
	// keep sees to it that the rooms of campaigns last until these are over, whenever
	// that has become. One goroutine calls it, again and again.
	keep(ctx context.Context, held []*dibs.Campaign) error
	// drop forgets the room of a campaign that is over, in this process.
	drop(campaign uint32)
}

// ask asks for a user's number, or for one to be given.
type ask struct {
	user string
	join bool
}

// The numbers of those who have none.
const (
	noNumber int64 = 0
	roomFull int64 = -1
	// leftForGood is for one who has given up mostGivenUp numbers.
	leftForGood int64 = -2
)

// mostGivenUp is how many numbers a user can give up: who has left may come back
// once. Otherwise one user, coming and leaving, could take numbers without end.
// lua/look.lua has it, too.
// The bound is for each user and campaign.
const mostGivenUp = 2

// progress is how far a room is.
type progress struct {
	nowMS int64
	// tail is the last number given.
	tail int64
	// early is how many came before the start; -1 before it.
	early int64
	// admitted is up to which place users are admitted.
	admitted int64
	// seed shuffles those who came before the start; zero before it.
	seed Sum
}

func (p *progress) started() bool { return p.early >= 0 }

// terms are what the room of a campaign goes by.
type terms struct {
	startsMS, expireMS int64
	open, shuffle      bool
	perSecond          float64
	burst, most        int64
}

// keepRoom is how long after its end a campaign's room is kept.
const keepRoom = 7 * 24 * time.Hour

func termsOf(c *dibs.Campaign) terms {
	r := c.Gate.Room
	return terms{
		startsMS: c.StartsAt.UnixMilli(), expireMS: c.EndsAt.Add(keepRoom).UnixMilli(),
		open: c.State == dibs.Published, shuffle: r.Mode == dibs.Shuffle,
		perSecond: r.PerSecond(), burst: r.BurstOf(), most: r.MaxOf(),
	}
}

// turns is up to which place users are admitted, as time goes on: what
// lua/look.lua does in Redis.
//
// It has no lock: the mutex of its roomInMemory guards it. early is set once, at the start.
// admitted never falls, and is at most one burst beyond tail.
type turns struct {
	tail, early int64
	admitted    float64
	asOfMS      int64
	seed        Sum
	// gone are places that were given up and not passed yet; those up to passed
	// have been.
	gone   map[int64]bool
	passed int64
}

func newTurns() turns { return turns{early: -1, gone: make(map[int64]bool)} }

// advance moves on to a time. seed is taken by the first call after the start.
func (t *turns) advance(nowMS int64, at *terms, seed Sum) {
	if t.early < 0 && nowMS >= at.startsMS {
		t.early, t.admitted, t.asOfMS, t.seed = t.tail, float64(at.burst), at.startsMS, seed
	}
	if t.early < 0 {
		return
	}
	elapsed := max(0, nowMS-t.asOfMS)
	// Unused admissions are kept up to one burst.
	most := math.Max(t.admitted, float64(t.tail+at.burst))
	if at.open {
		// A time in which nobody could look lets in no more than a burst, or a moment's
		// worth.
		gain := math.Min(float64(elapsed)*at.perSecond/1000, math.Max(catchUp.Seconds()*at.perSecond, float64(at.burst)))
		t.admitted = math.Min(t.admitted+gain, most)
	}
	t.asOfMS += elapsed
	t.passGone()
	t.admitted = math.Min(t.admitted, most)
	t.passed = min(t.passed, int64(t.admitted))
}

// passGone lets one more in for each place that was given up and is passed.
func (t *turns) passGone() {
	if len(t.gone) == 0 {
		t.passed = int64(t.admitted)
	}
	for ; t.passed < int64(t.admitted); t.passed++ {
		if next := t.passed + 1; t.gone[next] {
			delete(t.gone, next)
			t.admitted++
		}
	}
}

// giveUp notes a place that nobody has any more.
func (t *turns) giveUp(place int64) {
	if place > 0 && place > int64(t.admitted) {
		t.gone[place] = true
	}
}

func (t *turns) progress(nowMS int64) progress {
	return progress{nowMS: nowMS, tail: t.tail, early: t.early, admitted: int64(t.admitted), seed: t.seed}
}
