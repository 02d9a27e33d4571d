package enginetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

var journalChecks = []Check{
	{"journal/pages by max and place", checkPaging},
	{"journal/pages across epochs", checkPagingEpochs},
	{"journal/trimming drops what is settled and keeps what is above", checkTrim},
	{"journal/trimming keeps what is younger", checkTrimAge},
	{"journal/a trimmed journal goes on where it was", checkTrimReopen},
	{"journal/the end is known when everything is trimmed", checkTrimmedEnd},
	{"journal/a shard that is halted decides nothing, and keeps its journal", checkHalt},
	{"journal/shards with entries are listed", checkJournalShards},
	{"journal/appended is signalled", checkAppended},
	{"journal/a grant keeps its reference", checkReferences},
}

// checkPaging reads the same journal in pages of several sizes and from every place:
// all give the same entries. Settling reads in pages, and an entry that falls between
// two of them would be a claim that never reaches the ledger. A journal that does not
// exist is empty and is no error.
func checkPaging(r *rig) {
	o := r.offer(100, limit(100))
	for i := range 20 {
		o.grant("ann", uint64(i), 1)
	}
	all := o.journal(dibs.Cursor{})
	equal(r, "entries", len(all), 21)
	end, err := o.eng.JournalEnd(o.ctx, o.shard)
	o.no(err, "read the journal's end")
	equal(r, "the journal's end", end, all[20].Cursor)
	end, err = o.eng.JournalEnd(o.ctx, dibs.ShardID{Campaign: o.shard.Campaign + 1000})
	o.no(err, "read the end of a journal that is not")
	equal(r, "the end of a journal that is not", end, dibs.Cursor{})
	for _, size := range []int{1, 2, 7, 21, 1000} {
		var got []dibs.Entry
		for after := (dibs.Cursor{}); ; after = got[len(got)-1].Cursor {
			page, err := o.eng.ReadJournal(o.ctx, o.shard, after, size)
			o.no(err, "read %d entries after %v", size, after)
			o.that(len(page) <= size, "a page of at most %d has %d entries", size, len(page))
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		o.that(reflect.DeepEqual(got, all), "in pages of %d the journal is %+v, want %+v", size, got, all)
	}
	for i, e := range all {
		got := o.journal(e.Cursor)
		o.that(len(got) == len(all)-i-1, "after %v stand %d entries, want %d", e.Cursor, len(got), len(all)-i-1)
	}
	// Places past the head are asked for by a ledger that is ahead: there is nothing.
	o.that(len(o.journal(dibs.Cursor{Epoch: 1, Seq: 500})) == 0, "entries after the head")
	o.that(len(o.journal(dibs.Cursor{Epoch: 9})) == 0, "entries of an epoch to come")
}

// checkPagingEpochs reads a journal of four epochs, some ended by a kill. Within an
// epoch seq grows by 1; the next epoch begins at seq 1 with an opening. A page runs
// across that border, so that a settler needs no knowledge of epochs.
func checkPagingEpochs(r *rig) {
	o := r.offer(100, limit(100))
	var want []dibs.Cursor
	for epoch := uint16(1); epoch <= 4; epoch++ {
		want = append(want, dibs.Cursor{Epoch: epoch, Seq: 1})
		for i := range uint32(epoch) % 3 {
			o.grant("ann", 0, 1)
			want = append(want, dibs.Cursor{Epoch: epoch, Seq: i + 2})
		}
		if epoch < 4 {
			r.restart(epoch%2 == 0)
		}
	}
	got := o.journal(dibs.Cursor{})
	var places []dibs.Cursor
	for _, e := range got {
		places = append(places, e.Cursor)
	}
	o.that(slices.Equal(places, want), "the journal of four epochs is %v, want %v", places, want)
	for i, at := range want {
		page, err := o.eng.ReadJournal(o.ctx, o.shard, at, 2)
		o.no(err, "read after %v", at)
		end := min(i+3, len(got))
		o.that(len(page) == end-i-1 && (len(page) == 0 || reflect.DeepEqual(page, got[i+1:end])), "2 entries after %v are %+v", at, page)
	}
	// The ledger checks each epoch's first entry against the one before.
	o.settle(100)
	equal(r, "settled position", o.ledger.position, want[len(want)-1])
}

// checkReferences claims with references and without, some of them at once with claims
// that are refused or repeated: each entry has the reference of its own request, also
// after a kill. A user finds the way back to the shop by it.
func checkReferences(r *rig) {
	o := r.offer(30, limit(1))
	asked := func(i int) dibs.EngineClaim {
		// Three requests of the same user: one of them is granted.
		req := o.request(userName(i/3), uint64(i+1), 1)
		if i/3%4 != 3 {
			req.Reference = strings.Repeat("中", 1+i%256) + fmt.Sprint(i)
		}
		return req
	}
	want := map[uint64]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 120 {
		all.Go(func() {
			req := asked(i)
			if d, err := o.eng.Claim(o.ctx, req); err == nil && d.Outcome == dibs.Granted {
				mu.Lock()
				defer mu.Unlock()
				want[req.Key] = req.Reference
			}
		})
	}
	all.Wait()
	equal(r, "grants", len(want), 30)
	check := func(when string) {
		for _, e := range o.journal(dibs.Cursor{}) {
			if e.Kind == dibs.EntryGrant {
				equal(r, fmt.Sprintf("the reference at %v %s", e.Cursor, when), e.Reference, want[e.Key])
			}
		}
	}
	check("at once")
	for i := range 120 {
		if req := asked(i); want[req.Key] != "" {
			req.Reference = "another"
			d, err := o.eng.Claim(o.ctx, req)
			o.that(err == nil && d.Replayed, "the repeat with another reference: %+v, %v", d, err)
		}
	}
	r.restart(true)
	check("after a kill")
	o.settle(7)
}

// later is a time after every decision of a check.
func (r *rig) later() time.Time { return r.time().Add(240 * time.Hour) }

// checkTrim trims by place: entries up to the place go, and those above stay as they
// were. The engine knows of grants without their entries, and the next entry continues
// the numbering also when the journal is empty.
func checkTrim(r *rig) {
	o := r.offer(100, limit(100))
	for i := range 20 {
		o.grant("ann", uint64(i)+1, 1)
	}
	all := o.journal(dibs.Cursor{})
	// Entries at or before the place may still be there: engines trim whole rows.
	for _, n := range []int{0, 8, 15} {
		o.no(o.eng.TrimJournal(o.ctx, o.shard, all[n].Cursor, r.later()), "trim up to %v", all[n].Cursor)
		kept := o.journal(all[n].Cursor)
		o.that(reflect.DeepEqual(kept, all[n+1:]), "trimmed up to %v, the journal goes on with %+v", all[n].Cursor, kept)
	}
	g, ok, err := o.eng.Find(o.ctx, dibs.Position{ShardID: o.shard, Cursor: all[3].Cursor})
	o.no(err, "find a grant whose entry is trimmed")
	o.that(ok && g.UserID == "ann", "a grant whose entry is trimmed is %+v, %v", g, ok)
	o.counts(80, 20)
	head := o.stats().Head
	o.no(o.eng.TrimJournal(o.ctx, o.shard, head, r.later()), "trim up to the head")
	o.that(len(o.journal(dibs.Cursor{})) == 0, "%d entries are left after trimming all", len(o.journal(dibs.Cursor{})))
	// An engine that takes the next place from the journal's last entry starts at 1 again.
	g = o.grant("bob", 1, 1)
	equal(r, "the next place", g.Cursor, dibs.Cursor{Epoch: head.Epoch, Seq: head.Seq + 1})
	equal(r, "entries", len(o.journal(dibs.Cursor{})), 1)
}

// checkTrimmedEnd: where a journal ended tells, also after a restart and after the
// shard was retired, that a ledger has gone back in time. A ledger that was restored
// from a backup would otherwise look complete, and units granted since the backup
// would be granted again.
func checkTrimmedEnd(r *rig) {
	o := r.offer(100, limit(100))
	o.grant("ann", 1, 2)
	o.settle(100)
	end := o.stats().Head
	ends := func(when string) {
		got, err := o.eng.JournalEnd(o.ctx, o.shard)
		o.no(err, "read the journal's end %s", when)
		equal(r, "the end "+when, got, end)
	}
	o.no(o.eng.TrimJournal(o.ctx, o.shard, end, r.later()), "trim everything")
	ends("when everything is trimmed")
	r.restart(false)
	o.settle(100)
	end = o.stats().Head
	o.no(o.eng.TrimJournal(o.ctx, o.shard, end, r.later()), "trim everything in the next epoch")
	ends("of the next epoch")
	o.no(o.eng.Halt(o.ctx, o.shard), "halt the shard")
	ends("of a shard that is halted")
}

// checkHalt checks Halt, by which a service takes out a shard whose history it doubts.
// No process decides anything on it, a second Halt changes nothing, and the journal
// stays: it may be the only record of the last grants. Opening the shard again makes
// it sell.
func checkHalt(r *rig) {
	o := r.offer(10, limit(10))
	o.grant("ann", 1, 2)
	before := o.journal(dibs.Cursor{})
	for range 2 {
		o.no(o.eng.Halt(o.ctx, o.shard), "halt the shard")
		_, err := o.eng.Claim(o.ctx, dibs.EngineClaim{Shard: o.shard, UserID: "bob", Key: 2, Quantity: 1})
		o.that(errors.Is(err, dibs.ErrNotOpen), "a claim on a shard that is halted: %v", err)
		_, err = o.eng.Stats(o.ctx, o.shard)
		o.that(errors.Is(err, dibs.ErrNotOpen), "the stats of a shard that is halted: %v", err)
	}
	after := o.journal(dibs.Cursor{})
	o.that(reflect.DeepEqual(after, before), "the journal of a shard that is halted is %+v, want %+v", after, before)
	r.restart(false)
	o.grant("bob", 2, 1)
}

// checkTrimAge trims by age: an entry that is settled stays while it is younger than
// the time given. Operators keep entries for an hour to settle an older ledger again
// from them. The second part needs a clock that can be set.
func checkTrimAge(r *rig) {
	o := r.offer(100, limit(100))
	o.grant("ann", 1, 1)
	past := r.time().Add(-time.Hour)
	o.no(o.eng.TrimJournal(o.ctx, o.shard, o.stats().Head, past), "trim what is older than an hour")
	equal(r, "entries", len(o.journal(dibs.Cursor{})), 2)
	if r.factory.OwnClock {
		return
	}
	r.setTime(r.time().Add(30 * time.Minute))
	between := r.time()
	r.setTime(r.time().Add(10 * time.Minute))
	o.grant("bob", 1, 1)
	o.no(o.eng.TrimJournal(o.ctx, o.shard, o.stats().Head, between), "trim what is older than ten minutes")
	kept := o.journal(dibs.Cursor{})
	o.that(len(kept) == 1 && kept[0].UserID == "bob", "trimmed by age, the journal keeps %+v", kept)
}

// checkTrimReopen restarts on a journal that was trimmed to nothing. The opening of
// the next epoch still names the last entry before it, so that the ledger sees that
// nothing is missing, and the grant is known from the ledger's load alone.
func checkTrimReopen(r *rig) {
	o := r.offer(10, limit(10))
	g := o.grant("ann", 1, 2)
	o.settle(100)
	o.no(o.eng.TrimJournal(o.ctx, o.shard, o.ledger.position, r.later()), "trim all")
	r.restart(false)
	got := o.journal(o.ledger.position)
	o.that(len(got) == 1 && got[0].Kind == dibs.EntryOpen && got[0].Prev == g.Cursor,
		"reopened after trimming all, the journal is %+v, want an opening after %v", got, g.Cursor)
	o.replay(1, g)
	o.counts(8, 2)
	o.settle(100)
}

// checkJournalShards checks that every shard with entries is listed once, also after a
// kill. At start, and with the fleet lease, a node finds by this list what a dead node left
// unsettled.
func checkJournalShards(r *rig) {
	a, b := r.offer(1, nil), r.offer(1, nil)
	for range 2 {
		got, err := r.eng.JournalShards(r.ctx)
		r.no(err, "list the shards that have entries")
		for _, o := range slices.Concat(a.shards(), b.shards()) {
			n := 0
			for _, s := range got {
				if s == o.shard {
					n++
				}
			}
			equal(r, fmt.Sprintf("listings of shard %v", o.shard), n, 1)
		}
		equal(r, "shards with entries", len(got), len(a.shards())+len(b.shards()))
		r.restart(true)
	}
}

// checkAppended checks that an entry that became durable is signalled. Settling sleeps
// until then: a lost signal leaves claims unsettled until the next grant. One signal
// may stand for several entries.
func checkAppended(r *rig) {
	o := r.offer(100, limit(100))
	for i := range 20 {
		drain(r.eng.Appended())
		// A signal of an earlier entry may still be on its way; what counts is
		// that one comes after this entry.
		o.grant("ann", uint64(i)+1, 1)
		r.signalled(i)
	}
}

// signalTimeout is how long a signal may take, which is due when its entry is
// durable.
const signalTimeout = 30 * time.Second

// signalled waits for a signal after the grant of a number.
func (r *rig) signalled(i int) {
	ctx, cancel := context.WithTimeout(r.ctx, signalTimeout)
	defer cancel()
	select {
	case <-r.eng.Appended():
	case <-ctx.Done():
		r.fatalf("no signal within %v after grant %d", signalTimeout, i)
	}
}

// drain takes signals off the channel without waiting for one.
func drain(ch <-chan struct{}) {
	for {
		select {
		case <-ch:
		default:
			return
		}
	}
}
