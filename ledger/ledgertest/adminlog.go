package ledgertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/ledger"
)

// adminLogOf is access on a ledger, for what it makes of the chain: at a time at which entries of the tests may be dropped.
func adminLogOf(l ledger.Ledger) *access.Access {
	now := func() time.Time { return start.Add(500 * 24 * time.Hour) }
	return access.New(access.Config{Ledger: l.Access, Now: now, LedgerTimeout: time.Minute})
}

// wholeLog checks that the chain over the admin log is whole, and returns the report.
func (f *fixture) wholeLog(entries int64) access.ChainReport {
	f.t.Helper()
	r, err := adminLogOf(f.ledger()).VerifyLog(f.t.Context(), access.ChainPoint{})
	f.must(err)
	if !r.Whole || r.Entries != entries {
		f.t.Errorf("the admin log: %+v, want whole with %d entries", r, entries)
	}
	return r
}

// testAdminLogChain writes, completes, erases and drops entries. The chain over them stays
// whole, goes on from where it was, and holds no text of an erased user.
func testAdminLogChain(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.wholeLog(0)
	// Nodes drop old entries by the clock: that may come before the first entry.
	f.must(l.Access.DropAdminActions(ctx, start))
	f.wholeLog(0)
	var actions []*access.AdminAction
	for i := range 4 {
		at := start.Add(time.Duration(i) * time.Minute)
		actions = append(actions, &access.AdminAction{
			ID: access.NewAdminActionID(at), At: at, Key: "k1", KeyName: "till\x00 \xff", Role: access.RoleAdmin, Action: "deposit", Target: "/v1/accounts/ann/deposits",
			Before: []byte(`{"user":"bob"}`),
		})
	}
	f.must(l.Access.SaveAdminActions(ctx, actions))
	done := *actions[3]
	done.Status, done.After = 200, []byte(`{"user_id":"ann"}`)
	f.must(l.Access.SaveAdminActions(ctx, []*access.AdminAction{&done}))
	f.must(l.Access.SaveAdminActions(ctx, []*access.AdminAction{&done}))
	// A start, four begins and one end: the repeat added nothing.
	before := f.wholeLog(4)
	same(t, "the last record", before.Last, int64(6))

	f.round(f.erasure("ann", false), nil, start)
	after := f.wholeLog(4)
	same(t, "records of the erasure", []int64{after.Erased, after.Last}, []int64{4, 10})
	links, err := l.Access.ChainLinks(ctx, 0, 100)
	f.must(err)
	for i := range links[:before.Last] {
		same(t, fmt.Sprint("the salt of record ", i+1), links[i].Salt, "")
	}
	same(t, "the record before the erasure", links[before.Last-1].Hash, before.Head)

	// The first two are dropped. Their erasure's records stay, and so would the entries: all
	// entries of these records go together, in their order.
	f.must(l.Access.DropAdminActions(ctx, start.Add(2*time.Minute)))
	dropped := f.wholeLog(4)
	same(t, "the chain without its oldest records", []int64{dropped.First, dropped.Last}, []int64{4, 11})
	f.must(l.Access.DropAdminActions(ctx, start.Add(2*time.Minute)))
	same(t, "the chain after nothing was dropped", f.wholeLog(4).Last, int64(11))
	f.must(l.Access.DropAdminActions(ctx, start.Add(time.Hour)))
	all := f.wholeLog(0)
	same(t, "the chain without entries", []int64{all.First, all.Last}, []int64{12, 12})
}

// testAdminLogRace writes on two connections at once, as two nodes do. The chain has one end:
// no record is lost, and none follows the same one as another.
func testAdminLogRace(t *testing.T, f *fixture) {
	const writers, each = 4, 8
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				at := start.Add(time.Duration(i) * time.Second)
				a := &access.AdminAction{ID: access.NewAdminActionID(at), At: at, Key: fmt.Sprint("k", w), Action: "deposit"}
				for _, status := range []int{0, 200} {
					a.Status = status
					if err := ledgers[(w+status)%2].Access.SaveAdminActions(t.Context(), []*access.AdminAction{a}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	r := f.wholeLog(writers * each)
	same(t, "the last record", r.Last, int64(1+2*writers*each))
}
