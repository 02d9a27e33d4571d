package room_test

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"

	"github.com/dibs-dev/dibs/gate"
)

func TestWhenALotteryTakesNobody(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-2 * hour)}
	spec := lottery(5)
	spec.Max = 2
	c := campaign(t, l, "draw", spec)
	queue := campaign(t, l, "queue", fifo(1))
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	register(t, r, c, "ann")
	register(t, r, c, "bob")
	_, _, err := r.Register(t.Context(), c, "eve")
	fails(t, err, dibs.Overloaded)
	register(t, r, c, "bob")
	_, _, err = r.Register(t.Context(), queue, "ann")
	fails(t, err, dibs.NotFound)
	_, err = r.Join(t.Context(), c, "ann")
	fails(t, err, dibs.NotFound)
	_, err = r.Lottery(t.Context(), changed(c, func(c *dibs.Campaign) { c.State = dibs.Draft }))
	fails(t, err, dibs.NotFound)
	_, _, err = r.Register(t.Context(), changed(c, func(c *dibs.Campaign) { c.State = dibs.EndedState }), "eve")
	fails(t, err, dibs.Ended)
}

// changing is a ledger whose list is changed behind dibs's back.
type changing struct {
	gate.RoomLedger
	drop bool
}

func (l *changing) EntriesAfter(ctx context.Context, campaign uint32, after string, most int) ([]gate.LotteryEntry, error) {
	page, err := l.RoomLedger.EntriesAfter(ctx, campaign, after, most)
	if l.drop && len(page) > 1 {
		page = page[1:]
	}
	return page, err
}

// Nothing is drawn of a list that is not the one that was closed.
func TestAChangedListIsNotDrawn(t *testing.T) {
	for name, early := range map[string]bool{"before the list is hashed": true, "before the draw": false} {
		t.Run(name, func(t *testing.T) {
			l, at := newLedger(t), &clock{now: noon.Add(-2 * hour)}
			spec := lottery(5)
			spec.PublicValue = "a number"
			c := campaign(t, l, "draw", spec)
			bad := &changing{RoomLedger: l}
			r := newRooms(t, room.Config{Ledger: bad, Now: at.Now})
			for i := range 10 {
				register(t, r, c, user(i))
			}
			at.set(noon.Add(-hour))
			bad.drop = early
			r.Tick(c)
			bad.drop = true
			if _, err := r.TellPublicValue(t.Context(), c, "7"); (err == nil) == early {
				t.Fatalf("the value: %v", err)
			}
			at.pass(time.Second)
			r.Tick(c)
			if v := show(t, r, c); v.State != gate.LotteryClosed || v.Seed != "" {
				t.Fatalf("%+v", v)
			}
			bad.drop = false
			at.pass(time.Second)
			r.Tick(c)
			must(t, func() error { _, err := r.TellPublicValue(t.Context(), c, "7"); return err }())
			r.Tick(c)
			if v := show(t, r, c); v.State != gate.LotteryDrawn {
				t.Fatalf("once it is whole again: %+v", v)
			}
		})
	}
}
