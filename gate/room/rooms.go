// Package room makes users wait for their turn: waiting rooms, in which places
// are given by arrival or by chance, and lotteries.
//
// # Basics
//
// [New] makes the rooms of all campaigns. They are a [dibs.Gate]: a claim on a
// campaign with a room passes when it carries an admission, a sealed text that is
// the user's alone, good for minutes, and renewed as long as it is their turn. The
// engine decides afterwards, as always: an admission grants nothing.
//
// Users get numbers in the order of their arrival. In a shuffled room, those who
// came before the start are put into a random order at the start; everybody else's
// place is their number. The room admits up to a place, and that one number moves on
// at the campaign's rate. So there is nothing to be done for anybody who waits: a
// user who knows their place, and up to where the room has admitted, knows all.
//
// With Redis, numbers and progress are there, in one order for all nodes. Without
// it they are in this process, and saved in the ledger before they are told.
//
// A lottery is kept in the ledger. Its winners are drawn by the rule of
// docs/LOTTERY.md, which anybody can repeat.
//
// # Caveats
//
// Which moment the start is, and how fast time goes, says the clock of Redis, or
// of this process; when registration opens and closes, that of the node asked.
package room

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/bounded"
	"github.com/dibs-dev/dibs/internal/seal"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Config configures rooms. Ledger and Key are required.
type Config struct {
	Ledger gate.RoomLedger
	// Redis keeps the places for all nodes; nil: this process keeps them.
	Redis Redis
	// Key signs admissions: every node of a ledger has the same one. SetKey replaces it.
	Key []byte
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger is for what failed behind everybody's back; nil discards.
	Logger *slog.Logger
}

const (
	// tickEvery is how often rooms in use are looked at, and usedFor how long a room
	// that nobody asked for counts as in use.
	tickEvery = 250 * time.Millisecond
	usedFor   = time.Minute
	// knownPlaces is how many users' numbers a node remembers, to tell a user who claims
	// too early how far they are, and how many registrations.
	// A user who is forgotten is asked for again; nothing else depends on it.
	knownPlaces = 1 << 18
	// forgetRoomAfter is how long after its end a campaign's room stays in this process.
	forgetRoomAfter = time.Hour
	// trimEvery is how often the ledger drops the places of campaigns that have been over for keepRoom: one whose end
	// is moved until then goes on with its places, as in Redis.
	trimEvery = time.Hour
)

// Rooms are the waiting rooms and lotteries of all campaigns. It is safe for
// concurrent use.
//
// Maps and caches lock themselves; watchers has a mutex, which is not held while they
// are called. trimmed is used by the tick's goroutine alone. After Close no goroutine
// is left.
type Rooms struct {
	cfg        Config
	store      store
	admissions *seal.Sealer
	log        *slog.Logger
	// waitingRooms and lotteries are by the numbers of their campaigns.
	waitingRooms sync.Map // uint32 -> *waitingRoom
	lotteries    sync.Map // uint32 -> *lottery
	known        bounded.Cache[who, knownPlace]
	// entries are registrations that this node has told their users.
	entries bounded.Cache[who, gate.LotteryEntry]
	// given are admissions that users have, and keys counts the changes of the key: an admission of an earlier key
	// is not given again.
	given bounded.Cache[who, given]
	keys  atomic.Int64

	watchers struct {
		mu   sync.Mutex
		next int
		all  map[int]func(gate.RoomProgress)
	}

	life    context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	started atomic.Bool
	counts  roomCounts
	trimmed time.Time
}

// who is a user of a campaign.
type who struct {
	campaign uint32
	user     string
}

var (
	_ dibs.Gate      = (*Rooms)(nil)
	_ gate.Places    = (*Rooms)(nil)
	_ gate.Lotteries = (*Rooms)(nil)
)

// New returns rooms that answer at once; Start has them go on by themselves.
func New(cfg Config) (*Rooms, error) {
	if cfg.Ledger == nil {
		return nil, errors.New("room: Config.Ledger is required")
	}
	if len(cfg.Key) < seal.MinKey {
		return nil, fmt.Errorf("room: Config.Key must have at least %d bytes", seal.MinKey)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	r := &Rooms{cfg: cfg, admissions: seal.New(cfg.Key, "admission"), log: cfg.Logger}
	if err := r.openCaches(); err != nil {
		return nil, fmt.Errorf("room: %w", err)
	}
	r.watchers.all = make(map[int]func(gate.RoomProgress))
	r.life, r.cancel = context.WithCancel(context.Background())
	if r.store = store(newMemory(cfg.Ledger, cfg.Now)); cfg.Redis != nil {
		r.store = &shared{redis: cfg.Redis}
	}
	return r, nil
}

// openCaches makes what a node remembers of users.
func (r *Rooms) openCaches() error {
	var errs [3]error
	r.known, errs[0] = bounded.New[who, knownPlace](knownPlaces)
	r.entries, errs[1] = bounded.New[who, gate.LotteryEntry](knownPlaces)
	r.given, errs[2] = bounded.New[who, given](knownPlaces)
	return errors.Join(errs[:]...)
}

// SetKey has admissions signed by another key. Those that the earlier key has signed are good until a time; a user who
// asks again gets one of the new key.
func (r *Rooms) SetKey(key []byte, until time.Time) error {
	if err := r.admissions.Renew(key, until); err != nil {
		return err
	}
	// After the renewal: an admission that is sealed in between counts as one of the earlier key, and is made again.
	r.keys.Add(1)
	return nil
}

// Start has the rooms go on by themselves until Close: they tell how far they
// are, and lotteries close and draw. held returns the campaigns that this node
// holds; it is called a few times a second.
func (r *Rooms) Start(held func() []*dibs.Campaign) {
	if r.started.Swap(true) {
		return
	}
	// A draw may take seconds: those who wait are told all the while.
	for _, tick := range []func(context.Context, []*dibs.Campaign){r.tickRooms, r.tickLotteries} {
		r.running.Go(func() {
			for range wait.Every(r.life, tickEvery) {
				tick(r.life, held())
			}
		})
	}
}

// Close stops what Start began, and returns when nothing is under way.
func (r *Rooms) Close() {
	r.cancel()
	r.running.Wait()
	r.known.StopAllGoroutines()
	r.entries.StopAllGoroutines()
	r.given.StopAllGoroutines()
}

// tickRooms looks at all waiting rooms in use, and forgets those that are over.
func (r *Rooms) tickRooms(ctx context.Context, held []*dibs.Campaign) {
	for _, c := range held {
		if v, ok := r.waitingRooms.Load(c.Number); ok && c.Gate != nil && c.Gate.Room != nil {
			v.(*waitingRoom).follow(ctx, c)
		}
	}
	r.keep(ctx, held)
	now := r.cfg.Now()
	r.waitingRooms.Range(func(number, v any) bool {
		if v.(*waitingRoom).campaign.Load().EndsAt.Add(forgetRoomAfter).Before(now) {
			r.waitingRooms.Delete(number)
			r.store.drop(number.(uint32))
		}
		return true
	})
	if now.Sub(r.trimmed) >= trimEvery {
		r.trimmed = now
		if err := r.cfg.Ledger.TrimRooms(ctx, now.Add(-keepRoom)); err != nil && ctx.Err() == nil {
			r.log.Warn("the places of campaigns that are over stay in the ledger", "err", err)
		}
	}
}

// keep has the rooms of campaigns that end later be kept for longer.
func (r *Rooms) keep(ctx context.Context, held []*dibs.Campaign) {
	keeping, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	if err := r.store.keep(keeping, held); err != nil && ctx.Err() == nil {
		// There are days until it matters.
		r.counts.failed.Add(1)
		r.log.Debug("a waiting room is not kept for longer yet", "err", err)
	}
}

// tickLotteries takes all lotteries a step on, and forgets those that are over.
func (r *Rooms) tickLotteries(ctx context.Context, held []*dibs.Campaign) {
	for _, c := range held {
		if c.Gate != nil && c.Gate.Room != nil && c.Gate.Room.Mode == dibs.Lottery {
			r.lotteryFor(c).follow(ctx)
		}
	}
	now := r.cfg.Now()
	r.lotteries.Range(func(number, v any) bool {
		if v.(*lottery).campaign.Load().EndsAt.Add(forgetRoomAfter).Before(now) {
			r.lotteries.Delete(number)
		}
		return true
	})
}

// Pass implements dibs.Gate: it looks at nothing but this process's memory.
// A refusal had no effect: the user asks for an admission, and claims again.
func (r *Rooms) Pass(_ context.Context, c *dibs.Campaign, req *dibs.ClaimRequest) (dibs.Result, bool) {
	spec := c.Gate.Room
	if spec == nil {
		return dibs.Result{}, true
	}
	now := r.cfg.Now()
	// A claim that comes too early by this clock is not passed on to another one.
	if reason, closed := c.Closed(now); closed {
		return dibs.Result{Outcome: reason}, false
	}
	verdict := r.admissions.Open(req.Admission, c.Number, req.UserID, now)
	switch {
	case verdict == seal.Valid:
		return dibs.Result{}, true
	case spec.Mode == dibs.Lottery:
		return r.passLottery(c, req.UserID)
	}
	return r.waits(c, req.UserID, verdict), false
}

var (
	joinFirst    = dibs.Text{EN: "take a place first: POST /v1/campaigns/{id}/queue", ZH: "请先排队：POST /v1/campaigns/{id}/queue"}
	notYourTurn  = dibs.Text{EN: "it is not your turn yet", ZH: "还未轮到您"}
	askAgain     = dibs.Text{EN: "it is your turn: send the admission that GET /v1/campaigns/{id}/queue gives you", ZH: "已轮到您：请携带 GET /v1/campaigns/{id}/queue 返回的放行凭证"}
	admitExpired = dibs.Text{EN: "the admission is no longer valid: GET /v1/campaigns/{id}/queue renews it", ZH: "放行凭证已过期：请通过 GET /v1/campaigns/{id}/queue 续期"}
	notAdmission = dibs.Text{EN: "this is no admission of yours for this campaign", ZH: "该放行凭证不属于您或不属于此活动"}
)

// waits is the answer to a claim that carries no valid admission.
func (r *Rooms) waits(c *dibs.Campaign, user string, verdict seal.Verdict) dibs.Result {
	res := dibs.Result{Outcome: dibs.Waiting, Detail: joinFirst, RetryAfter: time.Second}
	if k, ok := r.known.GetIfPresent(who{c.Number, user}); ok && k.number > 0 {
		if v, ok := r.waitingRooms.Load(c.Number); ok {
			view := v.(*waitingRoom).view(c, k.number)
			res.Place, res.Detail, res.RetryAfter = view.Position, notYourTurn, time.Duration(view.AskAfter)
			if view.State == gate.PlaceAdmitted {
				res.Detail = askAgain
			}
		}
	}
	switch verdict {
	case seal.Expired:
		res.Detail = admitExpired
	case seal.Foreign:
		res.Detail = notAdmission
	}
	return res
}

// knownPlace is what this node knows of a user's number, 0 for none: that it was so
// at sureMS, and that it was asked for last at askedMS.
type knownPlace struct{ number, sureMS, askedMS int64 }

// given is an admission that a user has, until when, and which of the keys has sealed it.
type given struct {
	admission string
	until     time.Time
	key       int64
}

// admission is what an admitted user's claims carry, and until when. A user who asks
// again gets the same one until half of its time is over.
func (r *Rooms) admission(c *dibs.Campaign, user string) (string, *time.Time) {
	now, life := r.cfg.Now(), c.Gate.Room.AdmitForOf()
	key := who{c.Number, user}
	g, good := r.hasAdmission(c, key)
	if !good {
		g.key = r.keys.Load()
		g.until = now.Add(life).UTC().Truncate(time.Millisecond)
		g.admission = r.admissions.Seal(c.Number, user, g.until)
		r.given.Set(key, g)
	}
	return g.admission, &g.until
}

// hasAdmission returns the admission that a user has, when half of its time is not
// over and the key of now has sealed it.
func (r *Rooms) hasAdmission(c *dibs.Campaign, key who) (given, bool) {
	g, ok := r.given.GetIfPresent(key)
	return g, ok && g.key == r.keys.Load() && g.until.Sub(r.cfg.Now()) > c.Gate.Room.AdmitForOf()/2
}

// Watch implements gate.Places.
func (r *Rooms) Watch(f func(gate.RoomProgress)) (stop func()) {
	w := &r.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.next
	w.next++
	w.all[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, id)
	}
}

// tell tells all who watch.
func (r *Rooms) tell(p gate.RoomProgress) {
	w := &r.watchers
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.all))
	w.mu.Unlock()
	for _, f := range all {
		f(p)
	}
}
