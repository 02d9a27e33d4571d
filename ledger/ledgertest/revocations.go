package ledgertest

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

// testRevocations stores, lists, takes back and drops revocations. The mark changes with each
// change of the list, and with nothing else: nodes read the list only when it does.
func testRevocations(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger().Revoked
	last := ""
	mark := func(changed bool) {
		t.Helper()
		now := try(l.RevocationMark(ctx)).must(t)
		if (now != last) != changed {
			t.Errorf("the mark was %q and is %q, changed: %t", last, now, changed)
		}
		last = now
	}
	mark(true)
	user := access.Revocation{ID: "r-1", User: "ann", IssuedBefore: start, Why: "手机丢失", CreatedAt: start, ExpiresAt: start.Add(time.Hour)}
	token := access.Revocation{ID: "r-2", JTI: "6f1c", CreatedAt: start.Add(time.Second), ExpiresAt: start.Add(time.Minute)}
	for _, r := range []access.Revocation{user, token} {
		same(t, "stored", try(l.InsertRevocation(ctx, &r, 2)).must(t), true)
		mark(true)
		mark(false)
	}
	ok := try(l.InsertRevocation(ctx, &access.Revocation{ID: "r-3", User: "bob", CreatedAt: start, ExpiresAt: start}, 2)).must(t)
	same(t, "one too many", ok, false)
	same(t, "revocations", try(l.Revocations(ctx)).must(t), []access.Revocation{token, user})
	mark(false)
	f.must(l.DropRevocations(ctx, start.Add(time.Minute)))
	mark(false)
	f.must(l.DropRevocations(ctx, start.Add(time.Minute+time.Millisecond)))
	mark(true)
	wants(t, "one that was dropped", l.DeleteRevocation(ctx, "r-2"), dibs.ErrNotFound)
	f.must(l.DeleteRevocation(ctx, "r-1"))
	mark(true)
	same(t, "revocations that are left", len(try(l.Revocations(ctx)).must(t)), 0)
}
