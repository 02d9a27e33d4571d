package enginetest

import "github.com/dibs-dev/dibs"

// shardChecks are about campaigns that get more shards while they are live.
var shardChecks = []Check{
	{"shards/a shard of before serves the users that it knows, and no others", checkKnownAlone},
}

// checkKnownAlone asks a shard for users who may be on it from before. Those who ever
// had a claim there are served as always, also when they have given it back: else they
// would be new on another shard, and have what this one gives back to them too. Those
// who never had one are told so, whatever stock, state and window are. A claim that
// came by another number of shards than the shard's decides nothing.
func checkKnownAlone(r *rig) {
	o := r.offer(4, func(c *dibs.Campaign) { c.LimitPerUser = 2 })
	o.grant("ann", 1, 1)
	given := o.grant("bob", 1, 1)
	o.release(given)
	known := func(user string, key uint64, repeat bool, want dibs.Reason) dibs.Decision {
		req := o.request(user, key, 1)
		req.OnlyKnown, req.OnlyRepeat, req.Shards = true, repeat, o.c.Shards
		return o.decides(req, want)
	}
	o.that(known("ann", 1, false, dibs.Granted).Replayed, "a repeat is a new grant")
	known("ann", 1, true, dibs.Granted)
	known("ann", 2, true, dibs.Overloaded)
	for _, key := range []uint64{0, 1} {
		known("eve", key, false, dibs.NotFound)
		known("eve", key, true, dibs.NotFound)
	}
	known("ann", 2, false, dibs.Granted)
	known("ann", 3, false, dibs.LimitReached)
	known("bob", 2, false, dibs.Granted)
	o.counts(1, 3)
	req := o.request("eve", 1, 1)
	req.Shards = o.c.Shards + 1
	_, err := o.eng.Claim(o.ctx, req)
	r.is(err, "a claim by another number of shards", dibs.ErrStale)
	o.grant("eve", 1, 1)
	known("mallory", 0, false, dibs.NotFound)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	// Engines may refuse by themselves what they have refused before.
	for range 50 {
		known("bob", 3, false, dibs.Paused)
		known("mallory", 1, false, dibs.NotFound)
		known("mallory", 0, true, dibs.NotFound)
	}
}
