package ledgertest

import (
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

// testApprovals stores approvals, and decides about each once: not after its time, and of two
// who decide, one does. A decided approval names no user any more.
func testApprovals(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger().Approvals
	ask := func(id string, asked int) access.Approval {
		return access.Approval{
			ID: id, Action: "deposit", Target: "/v1/accounts/ann/deposits", Call: []byte(`{"path":"/v1/accounts/ann/deposits"}`), State: access.ApprovalPending,
			AskedBy: "k1", AskedName: "till", AskedPerson: "https://login.example till", AskedRoots: []string{"k0", "k1"}, AskedAt: at(asked), ExpiresAt: at(asked + 60),
		}
	}
	first, second := ask("a1", 0), ask("a2", 1)
	for _, a := range []access.Approval{first, second} {
		same(t, "stored", try(l.InsertApproval(ctx, &a, 2)).must(t), true)
	}
	third := ask("a3", 2)
	same(t, "one too many", try(l.InsertApproval(ctx, &third, 2)).must(t), false)
	same(t, "approvals", try(l.Approvals(ctx)).must(t), []access.Approval{second, first})

	decided := first
	decided.State, decided.DecidedBy, decided.DecidedName, decided.DecidedAt, decided.Why = access.ApprovalApproved, "k2", "boss", at(60), "ok"
	same(t, "decided after its time", try(l.DecideApproval(ctx, &decided)).must(t), false)
	decided.DecidedAt = at(59)
	for _, want := range []bool{true, false} {
		same(t, "decided", try(l.DecideApproval(ctx, &decided)).must(t), want)
	}
	decided.State, decided.Status = access.ApprovalDone, 200
	f.must(l.FinishApproval(ctx, &decided))
	got := try(l.Approval(ctx, "a1")).must(t)
	decided.Target, decided.Call = "", nil
	same(t, "the decided one", *got, decided)
	f.must(l.FinishApproval(ctx, &second))
	same(t, "one that was not approved", try(l.Approval(ctx, "a2")).must(t).State, access.ApprovalPending)
	f.must(l.DropApprovals(ctx, at(1)))
	wants(t, "one that was dropped", errOf(l.Approval(ctx, "a1")), dibs.ErrNotFound)
	f.must(errOf(l.Approval(ctx, "a2")))
}
