package room_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/room"
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
		list, err := nodes[0].engine.RunScript(t.Context(), ttls, nil, "dibs:{*:room}:*")
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
	later := newRooms(t, room.Config{Ledger: newLedger(t), Redis: nodes[0].engine})
	later.Tick(c)
	lasts(c.EndsAt)
}
