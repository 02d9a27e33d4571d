package sqlledger_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs/access"
)

// TestUpgradeOrigins: keys and approvals of before keys had origins have none but themselves, and people can sign in at a
// command line afterwards.
func TestUpgradeOrigins(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx, at := t.Context(), time.UnixMilli(1_700_000_000_000).UTC()
		l := openAt(t, url)
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
		raw(migrationsDown(t, url, 25)...)
		l = openAt(t, url)
		defer closeAll(t, l)
		if k, err := l.Access.KeyByHash(ctx, key.Hash); err != nil || k.Roots != nil || k.Origins()[0] != "k1" {
			t.Errorf("%+v, %v", k, err)
		}
		if a, err := l.PendingActs.Approval(ctx, "a1"); err != nil || a.AskedName != "till" || a.AskedRoots != nil {
			t.Errorf("%+v, %v", a, err)
		}
		p := &access.PendingSignIn{Hash: []byte("code"), Person: access.Person{Subject: "s", Name: "ann", Role: access.RoleAdmin}, Challenge: "c", Until: at.Add(time.Minute)}
		if ok, err := l.InsertPending(ctx, p, 1, at); err != nil || !ok {
			t.Errorf("%v, %v", ok, err)
		}
	})
}
