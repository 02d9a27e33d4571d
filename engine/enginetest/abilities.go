package enginetest

import (
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// An ability that an engine does not have is not looked for: its callers do not need
// it. One that it has must do what dibs.Abilities says.
var abilityChecks = []Check{
	{"abilities/the stats count what was decided", checkStats},
	{"abilities/the level names each setting once", checkLevel},
	{"abilities/the store gives a value once", checkStore},
}

// checkStats checks that an engine's histograms follow its decisions: operators read
// from them how well claims are batched, and a histogram that stands still hides an
// engine that stalls. An implementation adds every granted claim to Batches before its
// answer, counts a batch as Lost only when its outcome was unknown, and has one bucket
// more than bounds: the last one takes the values above all bounds.
func checkStats(r *rig) {
	stats := r.eng.Abilities().Stats
	if stats == nil {
		return
	}
	o := r.offer(10, limit(10))
	before := stats()
	const n = 3
	for i := range n {
		o.grant("ann", uint64(i+1), 1)
	}
	after := stats()
	r.that(after.Batches.Sum >= before.Batches.Sum+n, "after %d grants the batches have %d claims, %d before", n, after.Batches.Sum, before.Batches.Sum)
	equal(r, "Lost", after.Lost, 0)
	for name, t := range map[string]dibs.Tally{"Batches": after.Batches, "Queued": after.Queued, "Durable": after.Durable} {
		r.that(len(t.Counts) == len(t.Bounds)+1 && slices.IsSorted(t.Bounds), "%s counts %d buckets with the bounds %v", name, len(t.Counts), t.Bounds)
	}
}

// checkLevel checks what an engine says of its durability level. The level asked for
// is a known one and no stronger than the one given: otherwise a yes survives less
// than the operator was promised. An engine that decides finds every setting in order,
// and names each setting once, so that a report never holds two verdicts about one
// setting.
func checkLevel(r *rig) {
	look := r.eng.Abilities().Level
	if look == nil {
		return
	}
	level, settings := look()
	// Levels lists the weakest level first, so a greater index is a stronger level.
	wanted, given := slices.Index(dibs.Levels(), level), slices.Index(dibs.Levels(), r.eng.Durability())
	r.that(wanted >= 0 && wanted <= given, "the level %q was asked for, and %q is given", level, r.eng.Durability())
	seen := map[string]bool{}
	for _, f := range settings {
		r.that(f.OK(), "of an engine that decides, a setting is wrong: %s", f)
		r.that(!seen[f.Subject], "the setting %s is named twice", f.Subject)
		seen[f.Subject] = true
	}
}

// checkStore checks that Take returns a value once. The gateway keeps its one-time
// tickets in this store: a value that is returned twice lets two connections in by one
// ticket. An implementation reads and deletes in one step, also when two processes take
// at once.
func checkStore(r *rig) {
	store := r.eng.Abilities().Store
	if store == nil {
		return
	}
	r.no(store.Put(r.ctx, "ticket", "ann", time.Minute), "put a value")
	// The first Take finds the value, the second one finds nothing and is no error.
	for i, want := range []string{"ann", ""} {
		value, ok, err := store.Take(r.ctx, "ticket")
		r.no(err, "take a value")
		r.that(value == want && ok == (want != ""), "taken %d times before, a value is %q, %v", i, value, ok)
	}
}
