package ledgertest

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

// testApprovals stores approvals, and decides about each once: not after its time, and of two
// who decide, one does. A decided approval names no user any more.
func testApprovals(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger().Approvals
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	ask := func(id string, asked int) access.Approval {
		return access.Approval{
			ID: id, Action: "deposit", Target: "/v1/accounts/ann/deposits", Call: []byte(`{"path":"/v1/accounts/ann/deposits"}`), State: access.ApprovalPending,
			AskedBy: "k1", AskedName: "till", AskedPerson: "https://login.example till", AskedRoots: []string{"k0", "k1"}, AskedAt: at(asked), ExpiresAt: at(asked + 60),
		}
	}
	first, second := ask("a1", 0), ask("a2", 1)
	for _, a := range []access.Approval{first, second} {
		ok, err := l.InsertApproval(ctx, &a, 2)
		f.must(err)
		same(t, "stored", ok, true)
	}
	third := ask("a3", 2)
	ok, err := l.InsertApproval(ctx, &third, 2)
	f.must(err)
	same(t, "one too many", ok, false)
	all, err := l.Approvals(ctx)
	f.must(err)
	same(t, "approvals", all, []access.Approval{second, first})

	decided := first
	decided.State, decided.DecidedBy, decided.DecidedName, decided.DecidedAt, decided.Why = access.ApprovalApproved, "k2", "boss", at(60), "ok"
	ok, err = l.DecideApproval(ctx, &decided)
	f.must(err)
	same(t, "decided after its time", ok, false)
	decided.DecidedAt = at(59)
	for _, want := range []bool{true, false} {
		ok, err = l.DecideApproval(ctx, &decided)
		f.must(err)
		same(t, "decided", ok, want)
	}
	decided.State, decided.Status = access.ApprovalDone, 200
	f.must(l.FinishApproval(ctx, &decided))
	got, err := l.Approval(ctx, "a1")
	f.must(err)
	decided.Target, decided.Call = "", nil
	same(t, "the decided one", *got, decided)
	f.must(l.FinishApproval(ctx, &second))
	got, err = l.Approval(ctx, "a2")
	f.must(err)
	same(t, "one that was not approved", got.State, access.ApprovalPending)
	f.must(l.DropApprovals(ctx, at(1)))
	_, err = l.Approval(ctx, "a1")
	wants(t, "one that was dropped", err, dibs.ErrNotFound)
	_, err = l.Approval(ctx, "a2")
	f.must(err)
}
