package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/erasure"
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
	r := try(adminLogOf(f.ledger()).VerifyLog(f.t.Context(), access.ChainPoint{})).must(f.t)
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

	// The erasure adds an entry that asks for it, in two records, since none has.
	f.round(f.erasure("ann", false), nil, start)
	after := f.wholeLog(5)
	same(t, "records of the erasure", []int64{after.Erased, after.Last}, []int64{4, 12})
	links := try(l.Access.ChainLinks(ctx, 0, 100)).must(t)
	same(t, "the record before the erasure", links[before.Last-1].Hash, before.Head)
	// Seals of what was ann's have lost their salts. That of bob, in the same entries, is as it was.
	for i := range actions {
		parts := links[i+1].Parts
		same(t, fmt.Sprint("salts that the entry ", i, " has lost"), []bool{strings.HasPrefix(string(parts.Target[0]), "."), strings.HasPrefix(string(parts.Before[0]), ".")}, []bool{true, false})
	}

	// The first two are dropped. Their erasure's records stay, and so would the entries: all
	// entries of these records go together, in their order.
	f.must(l.Access.DropAdminActions(ctx, start.Add(2*time.Minute)))
	dropped := f.wholeLog(5)
	same(t, "the chain without its oldest records", []int64{dropped.First, dropped.Last}, []int64{4, 13})
	f.must(l.Access.DropAdminActions(ctx, start.Add(2*time.Minute)))
	same(t, "the chain after nothing was dropped", f.wholeLog(5).Last, int64(13))
	// The record that asks stays longer than others: an erasure may change the log for that long.
	f.must(l.Access.DropAdminActions(ctx, start.Add(access.AskServes)))
	same(t, "the chain from the request on", f.wholeLog(5).First, int64(8))
	f.must(l.Access.DropAdminActions(ctx, start.Add(access.AskServes+48*time.Hour)))
	all := f.wholeLog(0)
	same(t, "the chain without entries", []int64{all.First, all.Last}, []int64{15, 15})
}

// testAdminLogAsked erases users by an entry that asks for it, as administrators do, and by an erasure that goes on for
// longer than an entry serves. No other entry asks for an erasure.
func testAdminLogAsked(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	act := func(at time.Time, action, target string) *access.AdminAction {
		t.Helper()
		a := &access.AdminAction{ID: access.NewAdminActionID(at), At: at, Key: "k1", Role: access.RoleAdmin, Action: action, Target: target}
		f.must(l.Access.SaveAdminActions(ctx, []*access.AdminAction{a}))
		return a
	}
	end := func(a *access.AdminAction) {
		t.Helper()
		a.Status = 200
		f.must(l.Access.SaveAdminActions(ctx, []*access.AdminAction{a}))
	}
	insert := func(user, act string) *erasure.Erasure {
		t.Helper()
		e := newErasure(user)
		f.must(l.Erasure.InsertErasure(ctx, e, act))
		same(t, "the erasure of "+user+" as it is stored", *try(l.Erasure.ErasureByID(ctx, e.ID)).must(t), *e)
		return e
	}
	end(act(start, "deposit", "/v1/accounts/ann/deposits"))
	asks := act(start.Add(time.Second), access.EraseAction, "/v1/users/{user}/erasure")
	e := insert("ann", asks.ID)
	same(t, "when it was asked for", e.AskedAt, asks.At)
	end(asks)
	// A start, a begin and an end for each of two, and a request.
	same(t, "the last record", f.wholeLog(2).Last, int64(6))
	f.round(e, nil, start.Add(time.Minute))
	r := f.wholeLog(2)
	same(t, "records of the erasure", []int64{r.Erased, r.Last}, []int64{1, 7})

	// Later acts about the user are erased later: another entry says so.
	late := start.Add(access.AskServes + time.Hour)
	end(act(late, "deposit", "/v1/accounts/ann/deposits"))
	f.round(f.stored(e), nil, late)
	r = f.wholeLog(4)
	same(t, "records of the erasure that goes on", []int64{r.Erased, r.Last}, []int64{2, 12})
	list := try(l.Access.AdminActions(ctx, access.AdminActionFilter{Action: access.EraseAction}, dibs.Page{})).must(t)
	same(t, "the entry of the erasure itself", []string{list.Items[0].Key, list.Items[0].Target}, []string{"dibs", "/v1/erasures/" + e.ID})

	// Entries that ask for nothing: one of another act, one that has ended, one that there is not.
	ended := act(late, access.EraseAction, "/v1/users/{user}/erasure")
	end(ended)
	for i, id := range []string{act(late, "deposit", "/v1/users/u").ID, ended.ID, "a-none"} {
		e := insert(fmt.Sprint("u", i), id)
		same(t, "whether it was asked for", e.AskedAt.IsZero(), true)
	}
	f.wholeLog(6)
}

// testAdminLogRace writes on two connections at once, as two nodes do. The chain has one end:
// no record is lost, and none follows the same one as another.
func testAdminLogRace(t *testing.T, f *fixture) {
	const writers, each = 4, 8
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	f.together(writers, func(w int) (err error) {
		for i := range each {
			at := start.Add(time.Duration(i) * time.Second)
			a := &access.AdminAction{ID: access.NewAdminActionID(at), At: at, Key: fmt.Sprint("k", w), Action: "deposit"}
			for _, status := range []int{0, 200} {
				a.Status = status
				err = errors.Join(err, ledgers[(w+status)%2].Access.SaveAdminActions(t.Context(), []*access.AdminAction{a}))
			}
		}
		return err
	})
	r := f.wholeLog(writers * each)
	same(t, "the last record", r.Last, int64(1+2*writers*each))
}
