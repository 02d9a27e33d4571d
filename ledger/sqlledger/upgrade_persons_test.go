package sqlledger_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// TestUpgradePersons: keys and approvals of before people could sign in are nobody's, and work as they did.
func TestUpgradePersons(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) { upgradesPersons(t, url, raw) })
}

func upgradesPersons(t *testing.T, address string, raw func(...string)) {
	ctx, at := t.Context(), time.UnixMilli(1_700_000_000_000).UTC()
	l := openAt(t, address)
	key := &access.APIKey{ID: "k1", Name: "till", Role: access.RoleAdmin, Hash: []byte("h"), CreatedAt: at}
	asked := &access.Approval{
		ID: "a1", Action: "deposit", Target: "t", Call: []byte(`{}`), State: access.ApprovalPending, AskedBy: "k1", AskedName: "till", AskedAt: at, ExpiresAt: at.Add(time.Hour),
	}
	if err := l.Access.InsertKey(ctx, key); err != nil {
		t.Fatal(err)
	}
	if ok, err := l.PendingActs.InsertApproval(ctx, asked, 9); err != nil || !ok {
		t.Fatal(ok, err)
	}
	closeAll(t, l)
	raw(migrationsDown(t, address, 21)...)
	old, err := sqlledger.Open(ctx, address, sqlledger.Options{AnySchema: true})
	if err != nil {
		t.Fatal(err)
	}
	if has, err := sqlledger.HasAdminKey(ctx, old, 20, at); err != nil || !has {
		t.Errorf("an older ledger has a key: %v, %v", has, err)
	}
	if _, err := old.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	closeAll(t, old)
	l = openAt(t, address)
	defer closeAll(t, l)
	if k, err := l.Access.KeyByHash(ctx, key.Hash); err != nil || k.Name != "till" || k.Person != "" {
		t.Errorf("%+v, %v", k, err)
	}
	if a, err := l.PendingActs.Approval(ctx, "a1"); err != nil || a.AskedName != "till" || a.AskedPerson != "" {
		t.Errorf("%+v, %v", a, err)
	}
	// The key of a person ends with their sign-in: it is no key that a server can be left with.
	if err := l.Access.RevokeKey(ctx, "k1", at); err != nil {
		t.Fatal(err)
	}
	person := &access.APIKey{ID: "k2", Name: "ann", Role: access.RoleAdmin, Hash: []byte("p"), CreatedAt: at, ExpiresAt: at.Add(time.Hour), Person: "p"}
	if err := l.Access.InsertKey(ctx, person); err != nil {
		t.Fatal(err)
	}
	if has, err := sqlledger.HasAdminKey(ctx, l, 21, at); err != nil || has {
		t.Errorf("a person's key counts: %v, %v", has, err)
	}
}
