package room

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

const (
	// saveEvery is how often it is saved up to which place users are admitted, and
	// catchUp the most time that counts between that and the next start, or between
	// two looks where it gives more than the burst: it must be longer, so that nobody's turn is taken back.
	saveEvery = time.Second
	catchUp   = 2 * time.Second
	// loadPage is how many places are read at once.
	loadPage = 10_000
)

// memory keeps rooms in this process, and saves every number before it is told.
// mu guards rooms. Each roomInMemory has a mutex of its own, so that one room does not wait
// for another.
type memory struct {
	ledger gate.RoomLedger
	now    func() time.Time

	mu    sync.Mutex
	rooms map[uint32]*roomInMemory
}

// roomInMemory is one room.
//
// Between two calls: tail is the highest number given, numbers and left have no
// user's number twice, and what the ledger lacks is in unsaved. No number is told
// while it is unsaved.
type roomInMemory struct {
	// mu is held while numbers are given and saved.
	mu     sync.Mutex
	loaded bool
	// numbers are those of the users in the room, and left is how many each user
	// has given up.
	numbers map[string]int64
	left    map[string]int
	turns   turns
	// unsaved are numbers that the ledger may not have yet.
	unsaved []gate.SavedPlace
	savedMS int64
	// savedEarly is turns.early as the ledger has it.
	savedEarly int64
}

func newMemory(ledger gate.RoomLedger, now func() time.Time) *memory {
	return &memory{ledger: ledger, now: now, rooms: make(map[uint32]*roomInMemory)}
}

func (m *memory) room(campaign uint32) *roomInMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.rooms[campaign]
	if d == nil {
		d = &roomInMemory{numbers: make(map[string]int64), left: make(map[string]int), turns: newTurns(), savedEarly: -1}
		m.rooms[campaign] = d
	}
	return d
}

// keep implements store: the ledger goes by the end that a campaign has by now.
func (m *memory) keep(context.Context, []*dibs.Campaign) error { return nil }

func (m *memory) drop(campaign uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rooms, campaign)
}

// newSeed returns randomness of the operating system.
func newSeed() (s Sum) {
	// It never fails: it stops the program instead.
	_, _ = rand.Read(s[:])
	return s
}

// look implements store. Numbers are saved before they are told, those of one
// call together.
func (m *memory) look(ctx context.Context, c *dibs.Campaign, asks []ask) ([]int64, progress, error) {
	d, at := m.room(c.Number), termsOf(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := m.load(ctx, d, c.Number, at.shuffle); err != nil {
		return nil, progress{}, err
	}
	numbers := make([]int64, len(asks))
	nowMS := m.now().UnixMilli()
	d.turns.advance(nowMS, &at, newSeed())
	for i, a := range asks {
		numbers[i] = d.number(a, &at)
	}
	p := d.turns.progress(nowMS)
	// The order of those who came early is told to nobody before it is kept, either.
	if len(d.unsaved) > 0 || d.turns.early != d.savedEarly {
		if err := m.save(ctx, d, c.Number); err != nil {
			return nil, progress{}, err
		}
	}
	return numbers, p, nil
}

// number returns a user's number, or gives them one.
func (d *roomInMemory) number(a ask, at *terms) int64 {
	n := d.numbers[a.user]
	if n != noNumber || !a.join {
		return n
	}
	if d.left[a.user] >= mostGivenUp {
		return leftForGood
	}
	// Those who gave their number up do not take anybody's place in the room.
	if int64(len(d.numbers)) >= at.most {
		return roomFull
	}
	d.turns.tail++
	n = d.turns.tail
	d.numbers[a.user] = n
	d.unsaved = append(d.unsaved, gate.SavedPlace{Number: n, UserID: a.user})
	return n
}

// save saves the numbers that are not saved. When it fails, the next call saves them:
// until then nobody is told their number.
func (m *memory) save(ctx context.Context, d *roomInMemory, campaign uint32) error {
	t := &d.turns
	r := gate.SavedRoom{
		Campaign: campaign, Tail: t.tail, Early: t.early, AdmittedMicro: int64(t.admitted * 1e6), At: time.UnixMilli(t.asOfMS),
	}
	if t.early >= 0 {
		r.Seed = t.seed.String()
	}
	if err := m.ledger.SavePlaces(ctx, r, d.unsaved); err != nil {
		return fmt.Errorf("room: saving places: %w", err)
	}
	// After an error they stay, and the next call saves them.
	d.unsaved, d.savedMS, d.savedEarly = nil, m.now().UnixMilli(), t.early
	return nil
}

// tick implements store.
func (m *memory) tick(ctx context.Context, c *dibs.Campaign) error {
	d := m.room(c.Number)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loaded || d.turns.tail == 0 || m.now().UnixMilli()-d.savedMS < saveEvery.Milliseconds() {
		return nil
	}
	return m.save(ctx, d, c.Number)
}

// leave implements store.
func (m *memory) leave(ctx context.Context, c *dibs.Campaign, user string, number, place int64) error {
	d := m.room(c.Number)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.numbers[user] != number {
		return nil
	}
	if err := m.ledger.DropPlace(ctx, c.Number, number); err != nil {
		return fmt.Errorf("room: giving a place up: %w", err)
	}
	delete(d.numbers, user)
	d.left[user]++
	d.turns.giveUp(place)
	return nil
}

// load reads what an earlier process has saved.
func (m *memory) load(ctx context.Context, d *roomInMemory, campaign uint32, shuffle bool) error {
	if d.loaded {
		return nil
	}
	r, err := m.ledger.SavedRoomOf(ctx, campaign)
	if errors.Is(err, dibs.ErrNotFound) {
		d.loaded = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("room: reading the places of an earlier run: %w", err)
	}
	numbers, left := make(map[string]int64), make(map[string]int)
	taken, last, tail := make(map[int64]bool), int64(0), r.Tail
	for {
		page, err := m.ledger.SavedPlaces(ctx, campaign, last, loadPage)
		if err != nil {
			return fmt.Errorf("room: reading the places of an earlier run: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			last = page[i].Number
			if last > gate.PlaceGivenUp {
				left[page[i].UserID]++
				tail = max(tail, last-gate.PlaceGivenUp)
				continue
			}
			numbers[page[i].UserID], taken[last], tail = last, true, max(tail, last)
		}
	}
	t, err := resume(r, tail, m.now())
	if err != nil {
		return err
	}
	var order shuffled
	p := t.progress(0)
	for n := int64(1); n <= t.tail; n++ {
		if !taken[n] {
			t.giveUp(order.place(n, &p, shuffle))
		}
	}
	d.left = left
	d.numbers, d.turns, d.savedEarly, d.loaded = numbers, t, t.early, true
	return nil
}

// resume goes on where an earlier process was.
func resume(r *gate.SavedRoom, tail int64, now time.Time) (turns, error) {
	t := newTurns()
	t.tail, t.early, t.admitted = tail, r.Early, float64(r.AdmittedMicro)/1e6
	t.asOfMS = max(r.At.UnixMilli(), now.Add(-catchUp).UnixMilli())
	t.passed = int64(t.admitted)
	if t.early < 0 {
		return t, nil
	}
	var err error
	if t.seed, err = ParseSum(r.Seed); err != nil {
		err = fmt.Errorf("%w: the seed of a waiting room: %w", dibs.ErrCorrupt, err)
	}
	return t, err
}
