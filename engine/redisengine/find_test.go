package redisengine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// neighbours returns users of one bucket, with names of every kind.
func neighbours(n int, buckets int64) []string {
	names := []string{"ann"}
	for i := 0; len(names) < n; i++ {
		name := []string{fmt.Sprint(100_000 + i), fmt.Sprintf("00000000-0000-4000-8000-%012x", i), fmt.Sprint("user-", i)}[len(names)%3]
		if format.BucketOf(name, buckets) == format.BucketOf("ann", buckets) {
			names = append(names, name)
		}
	}
	return names
}

// stored are the fields and values of a hash of the shard.
func (b *bench) stored(key string) map[string]string {
	b.Helper()
	r, err := b.e.p.redis.Call(b.Context(), "HGETALL", key)
	if err != nil {
		b.Fatal(err)
	}
	all := make(map[string]string)
	for name, value := range r.Pairs() {
		all[name] = value.Text
	}
	return all
}

// slotsOf takes the index of places apart: the bucket and the time of each.
func slotsOf(index map[string]string) map[dibs.Cursor]string {
	slots := make(map[dibs.Cursor]string)
	for at, runs := range index {
		first := format.PlaceOf(at)
		for runs != "" {
			ms, offset, count := format.MSOf(runs), uint32(runs[6]), uint32(runs[7])
			runs = runs[8:]
			for i := range count {
				slots[dibs.Cursor{Epoch: first.Epoch, Seq: first.Seq*chunk + offset + i}] = fmt.Sprintf("%x at %d", runs[:4], ms)
				runs = runs[4:]
			}
		}
	}
	return slots
}

// asLoaded compares what the scripts have written with what a load of the same
// claims would write: the same holdings, and an index that says the same.
func (b *bench) asLoaded(claims []dibs.Holding) {
	b.Helper()
	h := newOpenLoad(&dibs.ShardLoad{Holdings: claims})
	holdings, places, err := h.packed(b.l.buckets)
	if err != nil {
		b.Fatal(err)
	}
	if is, want := b.stored(b.l.keys.Holdings), mapOf(holdings); !maps.Equal(is, want) {
		b.Errorf("after %d claims the holdings are\n%q, a load writes\n%q", len(claims), is, want)
	}
	is, want := slotsOf(b.stored(b.l.keys.Places)), slotsOf(mapOf(places))
	if len(want) != len(claims) || !maps.Equal(is, want) {
		b.Errorf("after %d claims the index is\n%q, a load writes\n%q", len(claims), is, want)
	}
}

// mapOf are fields and values in turn as a map.
func mapOf(flat []string) map[string]string {
	all := make(map[string]string)
	for i := 0; i < len(flat); i += 2 {
		all[flat[i]] = flat[i+1]
	}
	return all
}

// crowd is users of one bucket, of whom the second one holds many claims of one
// to seven units, and what they were granted.
type crowd struct {
	*bench
	users  []string
	claims []dibs.Holding
	many   []dibs.Holding
}

// wants is one claim of the one who holds many: the key is its number.
func (c *crowd) wants(n int) dibs.EngineClaim { return ask(c.users[1], uint64(n), int64(n%3*3+1)) }

// claim has claims decided that are all granted.
func (c *crowd) claim(reqs ...dibs.EngineClaim) {
	c.Helper()
	for i, d := range c.decide(reqs...) {
		if d.Outcome != dibs.Granted || d.Replayed {
			c.Fatalf("claim %d of %d after %d is %+v", i, len(reqs), len(c.claims), d)
		}
		h := dibs.Holding{Cursor: d.Grant.Cursor, UserID: reqs[i].UserID, Key: reqs[i].Key, Quantity: reqs[i].Quantity, At: d.Grant.At}
		c.claims = append(c.claims, h)
		if h.UserID == c.users[1] {
			c.many = append(c.many, h)
		}
	}
}

// release gives claim n of the one who holds many back.
func (c *crowd) release(n int, epoch uint16) {
	c.Helper()
	for range 2 {
		if err := c.e.Release(c.Context(), dibs.Release{Claim: dibs.Position{ShardID: c.shard, Cursor: c.many[n-1].Cursor}, Epoch: epoch}); err != nil {
			c.Fatalf("release of claim %d: %v", n, err)
		}
	}
	c.many[n-1].Released = true
	for i := range c.claims {
		if c.claims[i].Cursor == c.many[n-1].Cursor {
			c.claims[i].Released = true
		}
	}
}

// check looks for every claim in every way.
func (c *crowd) check() {
	c.Helper()
	grants, err := c.e.HoldingsOf(c.Context(), c.users[1])
	if err != nil || len(grants) != len(c.many) {
		c.Fatalf("%d holdings of %d, %v", len(grants), len(c.many), err)
	}
	slices.Reverse(grants)
	for i, h := range c.many {
		g := grants[i]
		if g.Cursor != h.Cursor || g.Quantity != h.Quantity || g.Released != h.Released || g.UserID != h.UserID {
			c.Fatalf("holding %d is of %d units at %v, released %v, want %+v", i, g.Quantity, g.Cursor, g.Released, h)
		}
	}
	for _, h := range c.claims {
		g, ok, err := c.e.Find(c.Context(), dibs.Position{ShardID: c.shard, Cursor: h.Cursor})
		if err != nil || !ok || g.UserID != h.UserID || g.Quantity != h.Quantity || g.Released != h.Released {
			c.Errorf("Find(%v) is %+v, %v, %v, want %+v", h.Cursor, g, ok, err, h)
		}
		d := c.decide(ask(h.UserID, h.Key, h.Quantity), ask(h.UserID, h.Key, h.Quantity+1))
		if !d[0].Replayed || d[0].Grant.Cursor != h.Cursor || d[0].Grant.Released != h.Released || d[1].Outcome != dibs.KeyReused {
			c.Errorf("the repeats of %+v are %+v", h, d)
		}
	}
	all, err := c.l.readHolders(c.Context(), dibs.Cursor{}, 10)
	if err != nil {
		c.Fatal(err)
	}
	if all.users != int64(len(c.users)) {
		c.Errorf("the holders are %d of %d", all.users, len(c.users))
	}
}

// room is how many units the one who holds many can claim still: a claim of
// more is refused, and where it is none, one of exactly that is granted.
func (c *crowd) room(units, key int64) {
	c.Helper()
	user := c.users[1]
	d := c.decide(ask(user, 0, units+1))
	var held []dibs.Position
	for _, h := range slices.Backward(c.many) {
		if !h.Released && len(held) < 100 {
			held = append(held, dibs.Position{ShardID: c.shard, Cursor: h.Cursor})
		}
	}
	if d[0].Outcome != dibs.LimitReached || !slices.Equal(d[0].Held, held) {
		c.Fatalf("a claim of %d with room for %d is %v, filled by %v, want %v", units+1, units, d[0].Outcome, d[0].Held, held)
	}
	if units > 0 {
		c.claim(ask(user, uint64(key), units))
	}
}

// TestManyRecordsOfOneUser holds the limit, the repeats and every place of a
// user of many records, of quantities that fit into a mark and others, and counted in
// more than one byte, with others around them.
func TestManyRecordsOfOneUser(t *testing.T) {
	const limit = 1200
	b := newBench(t, 10_000, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = limit })
	c := &crowd{bench: b, users: neighbours(4, minBuckets)}
	c.claim(ask(c.users[0], 1, 2), c.wants(1), ask(c.users[2], 1, 1), c.wants(2))
	for _, next := range []int{3, 200, 254, 255, 256, 257, 299} {
		var reqs []dibs.EngineClaim
		for n := len(c.many) + 1; n <= next; n++ {
			reqs = append(reqs, c.wants(n))
		}
		c.claim(reqs...)
		c.asLoaded(c.claims)
	}
	c.claim(ask(c.users[3], 1, 1), ask(c.users[2], 2, 7))
	c.check()

	// 299 claims are 99 of one unit, and 100 each of four and of seven.
	c.room(limit-1199, 300)
	c.room(0, 0)
	for _, n := range []int{128, 1, 257, 299} {
		c.release(n, 1)
		c.asLoaded(c.claims)
		c.room(c.wants(n).Quantity, int64(1000+n))
		c.room(0, 0)
	}
	c.asLoaded(c.claims)
	c.check()

	// A load counts as the scripts do.
	c.release(2, 1)
	st, err := b.e.Stats(t.Context(), b.shard)
	if err != nil {
		t.Fatal(err)
	}
	campaign := openCampaign(10_000)
	campaign.LimitPerUser = limit
	load := &dibs.ShardLoad{Epoch: 2, Position: st.Head, StockLeft: st.Remaining, Holdings: c.claims}
	if err := b.e.Open(t.Context(), campaign, b.shard, load); err != nil {
		t.Fatal(err)
	}
	if again, err := b.e.Stats(t.Context(), b.shard); err != nil || again.Granted != st.Granted {
		t.Errorf("%d are granted after the load, %d before, %v", again.Granted, st.Granted, err)
	}
	c.asLoaded(c.claims)
	c.room(7, 2000)
	c.release(150, 2)
	c.room(1, 2001)
	c.check()
	c.asLoaded(c.claims)
}

// TestManyClaimsOfOneUserInOneBatch passes the limit within one call.
func TestManyClaimsOfOneUserInOneBatch(t *testing.T) {
	b := newBench(t, 10_000, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = 300 })
	var reqs []dibs.EngineClaim
	for n := range 310 {
		reqs = append(reqs, ask("ann", uint64(n+1), 1))
	}
	granted := 0
	for i, d := range b.decide(reqs...) {
		if d.Outcome == dibs.Granted {
			granted++
		} else if d.Outcome != dibs.LimitReached || i < 300 {
			t.Errorf("claim %d is %v", i, d.Outcome)
		}
	}
	if granted != 300 {
		t.Errorf("%d are granted, the limit is 300", granted)
	}
}

// TestBucketsThatAreCutOff reads every beginning of a bucket: only those that
// end with a user are whole.
func TestBucketsThatAreCutOff(t *testing.T) {
	users, counts := []string{"ann", "12345678", "0b91ad7c-5f0e-4c3d-9d6e-0123456789ab"}, []int{1, 256, 255}
	var bucket []byte
	ends := map[int]int{0: 0}
	for i, user := range users {
		bucket = format.AppendHolder(bucket, user, make([]byte, counts[i]*format.RecordSize))
		ends[len(bucket)] = i + 1
	}
	for n := range len(bucket) + 1 {
		h := newHolders(10)
		err := h.addBucket(string(bucket[:n]))
		want, whole := ends[n]
		if whole && (err != nil || h.users != int64(want)) || !whole && !errors.Is(err, dibs.ErrCorrupt) {
			t.Errorf("%d bytes have %d users, %v", n, h.users, err)
		}
	}
}
