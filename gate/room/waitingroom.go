package room

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"

	"github.com/dibs-dev/dibs/gate"
)

// waitingRoom is the waiting room of one campaign on this node.
//
// campaign only moves to newer versions and seen to later looks, by compare-and-swap,
// so that readers need no lock. told is used by the tick's goroutine alone.
type waitingRoom struct {
	r        *Rooms
	campaign atomic.Pointer[dibs.Campaign]
	asks     batcher[ask, int64]
	// seen is how far the room was when it was looked at last.
	seen  atomic.Pointer[progress]
	order shuffled
	// used is when somebody asked last, in ms.
	used atomic.Int64
	// told is up to which place those who watch know of; the tick's own.
	told int64
}

var (
	noPlace   = dibs.Fail(dibs.NotFound, dibs.Text{EN: "you have no place: POST /v1/campaigns/{id}/queue gives you one", ZH: "您尚未排队：请先 POST /v1/campaigns/{id}/queue"})
	isFull    = faults.Busy(30*time.Second, dibs.Text{EN: "the waiting room is full", ZH: "等候室已满"})
	wentTwice = dibs.Fail(dibs.LimitReached, dibs.Text{EN: "you have given your place up twice, and get no other", ZH: "您已两次放弃排队位置，无法再次排队"})
	overNow   = dibs.Fail(dibs.Ended, dibs.Text{EN: "the campaign is over", ZH: "活动已经结束"})
)

// waitingRoom returns the room of a campaign, in the newest definition known.
func (r *Rooms) waitingRoom(c *dibs.Campaign) (*waitingRoom, error) {
	if c.Gate == nil || c.Gate.Room == nil || c.Gate.Room.Mode == dibs.Lottery {
		return nil, gate.NoRoom
	}
	v, ok := r.waitingRooms.Load(c.Number)
	if !ok {
		h := &waitingRoom{r: r}
		h.campaign.Store(c)
		h.asks.begin(&r.running, h.look)
		v, _ = r.waitingRooms.LoadOrStore(c.Number, h)
	}
	h := v.(*waitingRoom)
	renew(&h.campaign, c)
	h.used.Store(r.cfg.Now().UnixMilli())
	return h, nil
}

func renew(at *atomic.Pointer[dibs.Campaign], c *dibs.Campaign) {
	if old := at.Load(); old.Version < c.Version {
		at.CompareAndSwap(old, c)
	}
}

// look carries asks out together.
// Two looks may come back in another order than they were made: the later time stays.
func (h *waitingRoom) look(ctx context.Context, asks []ask) ([]int64, error) {
	c := h.campaign.Load()
	numbers, p, err := h.r.store.look(ctx, c, asks)
	if err != nil {
		return nil, unavailable(err)
	}
	for {
		old := h.seen.Load()
		if old != nil && old.nowMS > p.nowMS || h.seen.CompareAndSwap(old, &p) {
			return numbers, nil
		}
	}
}

// unavailable is an error as callers get it: joining again finds the place that
// was given.
func unavailable(err error) error { return dibs.AsUnavailable(err, dibs.EffectUnknown) }

// follow looks at a room in use, and tells who watches how far it is.
func (h *waitingRoom) follow(ctx context.Context, c *dibs.Campaign) {
	renew(&h.campaign, c)
	if !h.inUse(c) {
		return
	}
	looking, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	if _, err := h.look(looking, nil); err != nil {
		if ctx.Err() == nil {
			h.r.counts.failed.Add(1)
			h.r.log.Debug("a waiting room is not looked at", "campaign", c.ID, "err", err)
		}
		return
	}
	if err := h.r.store.tick(looking, c); err != nil && ctx.Err() == nil {
		h.r.log.Warn("how far a waiting room is could not be saved", "campaign", c.ID, "err", err)
	}
	p := h.seen.Load()
	// Where Redis has lost a room, it begins anew: that is told, too.
	if p.admitted != h.told {
		h.told = p.admitted
		h.r.tell(gate.RoomProgress{
			CampaignID: c.ID, AdmittedUpTo: p.admitted, Waiting: max(0, p.tail-p.admitted),
			PerSecond: c.Gate.Room.PerSecond(), At: time.UnixMilli(p.nowMS).UTC(),
		})
	}
}

// inUse reports whether somebody asked lately, or waits and is told by others how
// far the room is.
// Rooms that nobody asks for cost nothing.
func (h *waitingRoom) inUse(c *dibs.Campaign) bool {
	now, p := h.r.cfg.Now(), h.seen.Load()
	if now.UnixMilli()-h.used.Load() <= usedFor.Milliseconds() {
		return true
	}
	return p != nil && p.tail > p.admitted && !now.Before(c.StartsAt) && now.Before(c.EndsAt)
}

// soonest and latest bound when it is worth to ask again.
const (
	soonest = time.Second
	latest  = 15 * time.Second
)

// view tells a number as its user sees it, as far as the room was seen.
func (h *waitingRoom) view(c *dibs.Campaign, number int64) gate.PlaceView {
	p := h.seen.Load()
	if p == nil {
		// A number is remembered for longer than how far its room is.
		p = &progress{early: -1, nowMS: h.r.cfg.Now().UnixMilli()}
	}
	spec := c.Gate.Room
	place := h.order.place(number, p, spec.Mode == dibs.Shuffle)
	v := gate.PlaceView{
		CampaignID: c.ID, State: gate.PlaceWaiting, Place: place, AdmittedUpTo: p.admitted, Waiting: max(0, p.tail-p.admitted), StartsAt: c.StartsAt,
	}
	var wait float64
	switch {
	case place == 0:
		v.State = gate.PlaceArrived
	case p.started() && place <= p.admitted:
		v.State = gate.PlaceAdmitted
	case p.started():
		v.Position = place - p.admitted
		wait = float64(v.Position) / spec.PerSecond()
	default:
		v.Position = place
		wait = float64(max(0, place-spec.BurstOf())) / spec.PerSecond()
	}
	estimate := time.Duration(wait * float64(time.Second))
	if !p.started() {
		estimate += max(0, c.StartsAt.Sub(time.UnixMilli(p.nowMS)))
	}
	estimate = estimate.Round(time.Millisecond)
	v.Estimate, v.AskAfter = dibs.Duration(estimate), dibs.Duration(min(max(estimate, soonest), latest))
	return v
}

// Join implements gate.Places.
func (r *Rooms) Join(ctx context.Context, c *dibs.Campaign, user string) (gate.PlaceView, error) {
	h, err := r.waitingRoom(c)
	if err != nil {
		return gate.PlaceView{}, err
	}
	now := r.cfg.Now()
	switch reason, _ := c.Closed(now); {
	case reason == dibs.NotFound:
		return gate.PlaceView{}, gate.NoRoom
	case reason == dibs.Ended:
		return gate.PlaceView{}, overNow
	case now.Before(c.Gate.Room.OpensAt):
		return gate.PlaceView{}, &dibs.Error{
			Reason: dibs.NotStarted, Detail: dibs.Text{EN: "the waiting room opens at %s", ZH: "等候室将于 %s开放"}.At(c.Gate.Room.OpensAt),
		}
	}
	r.counts.joined.Add(1)
	return h.ask(ctx, c, ask{user, true})
}

// Place implements gate.Places.
func (r *Rooms) Place(ctx context.Context, c *dibs.Campaign, user string) (gate.PlaceView, error) {
	h, err := r.waitingRoom(c)
	if err != nil {
		return gate.PlaceView{}, err
	}
	return h.ask(ctx, c, ask{user, false})
}

func (h *waitingRoom) ask(ctx context.Context, c *dibs.Campaign, a ask) (gate.PlaceView, error) {
	number, err := h.asks.call(ctx, a)
	switch {
	case err != nil:
		return gate.PlaceView{}, err
	case number == roomFull:
		return gate.PlaceView{}, isFull
	case number == leftForGood:
		return gate.PlaceView{}, wentTwice
	case number == noNumber:
		return gate.PlaceView{}, noPlace
	}
	nowMS := h.r.cfg.Now().UnixMilli()
	h.r.known.Set(who{c.Number, a.user}, knownPlace{number: number, sureMS: nowMS})
	return h.admitted(c, a.user, h.view(c, number)), nil
}

// admitted adds the admission to the view of whose turn it is.
func (h *waitingRoom) admitted(c *dibs.Campaign, user string, v gate.PlaceView) gate.PlaceView {
	if _, closed := c.Closed(h.r.cfg.Now()); v.State == gate.PlaceAdmitted && !closed {
		v.Admission, v.AdmissionExpiresAt = h.r.admission(c, user)
		// Half of its time is left when it is renewed.
		v.AskAfter = dibs.Duration(c.Gate.Room.AdmitForOf() / 2)
	}
	return v
}

// glanceAgain is for how long what the store has said of a user's number counts
// for more than the telling of places: that there is none, and that it is time for
// another admission.
const glanceAgain = 5 * time.Second

// Glance implements gate.Places. An admission is made only for a number that was
// there a moment ago: the user may have given it up on another node.
func (r *Rooms) Glance(c *dibs.Campaign, user string) (gate.PlaceView, bool) {
	h, err := r.waitingRoom(c)
	if err != nil || c.State == dibs.Draft || r.life.Err() != nil {
		return gate.PlaceView{}, false
	}
	key, nowMS := who{c.Number, user}, r.cfg.Now().UnixMilli()
	k, _ := r.known.GetIfPresent(key)
	sure := k.sureMS > 0 && nowMS-k.sureMS < glanceAgain.Milliseconds()
	if k.number > 0 {
		v := h.view(c, k.number)
		if _, has := r.hasAdmission(c, key); sure || has || v.State != gate.PlaceAdmitted {
			return h.admitted(c, user, v), true
		}
		if k.askedMS > 0 && k.sureMS >= k.askedMS && nowMS-k.sureMS < usedFor.Milliseconds() {
			// The glance before has asked for this one, when places are told less often
			// than it counts. The next asks again.
			k.askedMS = 0
			r.known.Set(key, k)
			return h.admitted(c, user, v), true
		}
	}
	if !sure && nowMS-k.askedMS >= glanceAgain.Milliseconds() {
		k.askedMS = nowMS
		r.known.Set(key, k)
		r.running.Go(func() { h.findOut(key, nowMS) })
	}
	return gate.PlaceView{}, false
}

// findOut asks the store for a user's number, for a glance at some time.
// An error leaves what is known: the next glance asks again.
func (h *waitingRoom) findOut(key who, askedMS int64) {
	ctx, cancel := context.WithTimeout(h.r.life, batchTime)
	defer cancel()
	number, err := h.asks.call(ctx, ask{key.user, false})
	if err != nil {
		return
	}
	nowMS := h.r.cfg.Now().UnixMilli()
	h.r.known.Set(key, knownPlace{max(number, noNumber), nowMS, askedMS})
}

// Leave implements gate.Places.
// It may be repeated: without a number nothing happens. The store compares the
// number, so a user who came back meanwhile keeps the new one.
func (r *Rooms) Leave(ctx context.Context, c *dibs.Campaign, user string) error {
	h, err := r.waitingRoom(c)
	if err != nil {
		return err
	}
	number, err := h.asks.call(ctx, ask{user, false})
	if err != nil || number <= 0 {
		return err
	}
	place := h.order.place(number, h.seen.Load(), c.Gate.Room.Mode == dibs.Shuffle)
	if err := r.store.leave(ctx, c, user, number, place); err != nil {
		return unavailable(err)
	}
	r.counts.left.Add(1)
	r.known.Invalidate(who{c.Number, user})
	r.given.Invalidate(who{c.Number, user})
	return nil
}
