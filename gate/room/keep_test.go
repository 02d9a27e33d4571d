package room_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"
)

// ttls are for how long Redis keeps each key of a room.
const ttls = `local all = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do all[#all + 1] = redis.call('PTTL', key) end
return all`

// The places of a campaign that ends later than was said at first last until that
// end, of whoever has looked since and of whoever has not; a node that was not
// there when the end was moved sees to it as well.
func TestRoomLastsWhenTheEndMoves(t *testing.T) {
	_, nodes, c := newNodes(t, 2, fifo(1), time.Now().Add(hour))
	const people = 40
	for i := range people {
		join(t, nodes[i%2].Rooms, c, user(i))
	}
	must(t, nodes[1].Leave(t.Context(), c, user(3)))
	lasts := func(end time.Time) {
		t.Helper()
		list, err := nodes[0].engine.Abilities().Store.RunScript(t.Context(), ttls, nil, "dibs:{*:room}:*")
		must(t, err)
		if len(list) < people/2 {
			t.Fatalf("there are %d keys", len(list))
		}
		for _, ttl := range list {
			if left := time.Duration(ttl.(int64)) * time.Millisecond; left < time.Until(end) {
				t.Fatalf("of %d keys one lasts for %v, and the campaign for %v", len(list), left, time.Until(end))
			}
		}
	}
	nodes[0].Tick(c)
	lasts(c.EndsAt)
	for _, days := range []time.Duration{30, 60} {
		c = changed(c, func(c *dibs.Campaign) { c.EndsAt = time.Now().Add(days * 24 * hour) })
		nodes[0].Tick(c)
		lasts(c.EndsAt)
	}
	// Nobody was there when it was moved again.
	c = changed(c, func(c *dibs.Campaign) { c.EndsAt = time.Now().Add(90 * 24 * hour) })
	later := newRooms(t, room.Config{Ledger: newLedger(t), Redis: nodes[0].engine.Abilities().Store})
	later.Tick(c)
	lasts(c.EndsAt)
}

// away is Redis that does not answer while it is set.
type away struct {
	room.Redis
	is bool
}

var errAway = errors.New("on purpose")

func (a *away) RunScript(ctx context.Context, text string, keys []string, args ...string) ([]any, error) {
	if a.is {
		return nil, errAway
	}
	return a.Redis.RunScript(ctx, text, keys, args...)
}

// Where Redis is away when the ends of two campaigns are moved, both rooms are kept
// for longer once it is back.
func TestRoomsLastWhenRedisWasAway(t *testing.T) {
	_, nodes, _ := newNodes(t, 1, fifo(1), time.Now().Add(hour))
	l, redis := newLedger(t), &away{Redis: nodes[0].engine.Abilities().Store}
	rooms := newRooms(t, room.Config{Ledger: l, Redis: redis})
	held := []*dibs.Campaign{campaign(t, l, "phone", fifo(1)), campaign(t, l, "watch", fifo(1))}
	end := time.Now().Add(30 * 24 * hour)
	for i, c := range held {
		c.StartsAt, c.EndsAt = time.Now().Add(hour), time.Now().Add(2*hour)
		join(t, rooms, c, user(1))
		held[i] = changed(c, func(c *dibs.Campaign) { c.EndsAt = end })
	}
	redis.is = true
	rooms.Tick(held...)
	redis.is = false
	rooms.Tick(held...)
	list, err := redis.RunScript(t.Context(), ttls, nil, "dibs:{*:room}:*")
	must(t, err)
	if len(list) < 4 {
		t.Fatalf("there are %d keys", len(list))
	}
	for _, ttl := range list {
		if left := time.Duration(ttl.(int64)) * time.Millisecond; left < time.Until(end) {
			t.Errorf("one of %d keys lasts for %v, and the campaigns for %v", len(list), left, time.Until(end))
		}
	}
}
