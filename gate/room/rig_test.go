package room_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/ledger/sqlledger"

	"github.com/dibs-dev/dibs/gate"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	key   = []byte("the key of the tests, 32 bytes +")
	noon  = time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	hour  = time.Hour
	errIO = errors.New("the disk does not answer")
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// newLedger opens a ledger in the test's folder.
func newLedger(t testing.TB) *sqlledger.Ledger {
	t.Helper()
	l, err := sqlledger.OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), sqlledger.Options{Migrate: true})
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

// newRooms makes a node's rooms.
func newRooms(t testing.TB, cfg room.Config) *room.Rooms {
	t.Helper()
	cfg.Key = key
	r, err := room.New(cfg)
	must(t, err)
	t.Cleanup(r.Close)
	return r
}

// campaign stores a published campaign with a room.
func campaign(t testing.TB, l *sqlledger.Ledger, id string, spec dibs.RoomSpec) *dibs.Campaign {
	t.Helper()
	c := &dibs.Campaign{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: noon, EndsAt: noon.Add(2 * hour), State: dibs.Published,
		Stock: dibs.Stock{Kind: dibs.Units, Total: 20}, LimitPerUser: 1, LatePayment: dibs.Reclaim, Shards: 1, Version: 1,
		CreatedAt: noon, UpdatedAt: noon, Gate: &dibs.GateSpec{Room: &spec},
	}
	must(t, l.InsertCampaign(context.Background(), c, nil))
	return c
}

// changed is a later version of a campaign.
func changed(c *dibs.Campaign, change func(*dibs.Campaign)) *dibs.Campaign {
	later, gate, spec := *c, *c.Gate, *c.Gate.Room
	gate.Room, later.Gate = &spec, &gate
	later.Version++
	change(&later)
	return &later
}

// join takes a place that there must be.
func join(t testing.TB, r *room.Rooms, c *dibs.Campaign, user string) gate.PlaceView {
	t.Helper()
	v, err := r.Join(context.Background(), c, user)
	must(t, err)
	return v
}

func place(t testing.TB, r *room.Rooms, c *dibs.Campaign, user string) gate.PlaceView {
	t.Helper()
	v, err := r.Place(context.Background(), c, user)
	must(t, err)
	return v
}

// fails checks the reason of an error.
func fails(t testing.TB, err error, want dibs.Reason) {
	t.Helper()
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// claims asks the gate.
func claims(r *room.Rooms, c *dibs.Campaign, user, admission string) (dibs.Result, bool) {
	return r.Pass(context.Background(), c, &dibs.ClaimRequest{CampaignID: c.ID, UserID: user, Quantity: 1, Admission: admission})
}

func user(n int) string { return fmt.Sprintf("u%d", n) }
