package claims_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/orders"
)

// refer claims with a reference.
func refer(r *testnode.Rig, user, key, reference string) dibs.Result {
	r.Helper()
	res, err := r.Node.Claims.Claim(r.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: user, Key: key, Quantity: 1, Reference: reference})
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// A reference comes back with the claim, wherever that is found, before and after it is
// settled and after a restart; a repeat has the first one.
func TestReferencesComeBack(t *testing.T) {
	const there = "https://shop.example/thanks?a=1&b=中"
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 3))
	res := refer(r, "u1", "k1", there)
	if res.Outcome != dibs.Granted || res.Claim.Reference != there {
		t.Fatalf("%+v", res)
	}
	mine := func(user string) string {
		t.Helper()
		list, err := r.Node.Claims.OfUser(t.Context(), user, dibs.Page{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%+v, %v", list.Items, err)
		}
		return list.Items[0].Reference
	}
	if got := mine("u1"); got != there {
		t.Errorf("my list has %q", got)
	}
	if c := r.Find(res.Claim.ID, dibs.Confirmed); c.Reference != there {
		t.Errorf("the claim has %q", c.Reference)
	}
	if plain := refer(r, "u2", "k2", ""); plain.Claim.Reference != "" || mine("u2") != "" {
		t.Errorf("a claim without a reference has %q", plain.Claim.Reference)
	}
	if err := r.Settle("phone"); err != nil {
		t.Fatal(err)
	}
	r.Reopen()
	if got := mine("u1"); got != there {
		t.Errorf("after a restart my list has %q", got)
	}
	if again := refer(r, "u1", "k1", there); !again.Replayed || again.Claim.Reference != there {
		t.Errorf("the repeat: %+v", again)
	}
	if other := refer(r, "u1", "k1", "https://elsewhere.example"); other.Outcome != dibs.KeyReused {
		t.Errorf("the repeat with another reference: %+v", other)
	}
	if err := r.Settle("phone"); err != nil {
		t.Fatal(err)
	}
	if other := refer(r, "u2", "k2", there); other.Outcome != dibs.KeyReused {
		t.Errorf("the repeat with a reference where the first request had none: %+v", other)
	}
	list, err := r.Node.Orders.List(t.Context(), dibs.OrderQuery{Reference: there}, dibs.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != res.Claim.ID {
		t.Errorf("by its reference: %+v, %v", list.Items, err)
	}
	if _, err := r.Node.Campaigns.End(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	if c, err := r.Node.Campaigns.Now(t.Context(), "phone"); err != nil || c.EndedAt.IsZero() {
		t.Errorf("the campaign ended at %v: %v", c.EndedAt, err)
	}
	r.Verify()
	r.Pass(2 * time.Hour)
	r.Reopen()
	repeats(r, there)
}

// repeats checks the repeats of two claims, of which the first has a reference, on a
// campaign that has left the engine.
func repeats(r *testnode.Rig, reference string) {
	r.Helper()
	for _, c := range []struct {
		user, key, asks string
		want            dibs.Reason
		has             string
	}{
		{"u1", "k1", reference, dibs.Granted, reference},
		{"u1", "k1", "", dibs.Granted, reference},
		{"u1", "k1", "another", dibs.KeyReused, ""},
		{"u2", "k2", "", dibs.Granted, ""},
		{"u2", "k2", reference, dibs.KeyReused, ""},
		{"u1", "never", reference, dibs.Ended, ""},
	} {
		got := refer(r, c.user, c.key, c.asks)
		if got.Outcome != c.want || got.Claim != nil && (!got.Replayed || got.Claim.Reference != c.has) {
			r.Errorf("the repeat of %s with the reference %q: %+v", c.user, c.asks, got)
		}
	}
}

// A claim in quarantine keeps its reference, and its repeats are judged by it, when the
// campaign has left the engine.
func TestReferencesAside(t *testing.T) {
	tune, _ := testnode.Slowly()
	r := testnode.New(t, tune)
	r.Publish(r.Sale("phone", 3))
	// The ledger refuses both.
	r.Tamper(`UPDATE positions SET stock_left = 0`)
	refer(r, "u1", "k1", "basket-7")
	refer(r, "u2", "k2", "")
	if err := r.Settle("phone"); err != nil {
		t.Fatal(err)
	}
	if n := r.InQuarantine(); n != 2 {
		t.Fatalf("%d entries in quarantine", n)
	}
	r.Pass(2 * time.Hour)
	r.Reopen()
	repeats(r, "basket-7")
}

// Too long a reference, and one of several lines, are refused before anything is granted.
func TestBadReferences(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 1))
	long := make([]rune, 257)
	for i := range long {
		long[i] = '中'
	}
	for _, bad := range []string{string(long), "a\nb", "a\u202eb", "\xff"} {
		_, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "u", Quantity: 1, Reference: bad})
		var e *dibs.Error
		if !errors.As(err, &e) || e.Reason != dibs.InvalidRequest || len(e.Faults) != 1 || e.Faults[0].Field != "/reference" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if res := refer(r, "u", "k", string(long[1:])); res.Outcome != dibs.Granted {
		t.Errorf("256 characters: %+v", res)
	}
}

// A node that dies between the grant and the settling loses no reference: users find it
// before the claim is settled, after a restart, and in the ledger.
func TestReferencesOutliveACrash(t *testing.T) {
	var r *testnode.Rig
	var claims map[string]dibs.Result
	check := func(when string) {
		t.Helper()
		for user, res := range claims {
			want := res.Claim.Reference
			if c, err := r.Node.Claims.Find(t.Context(), res.Claim.ID); err != nil || c.Reference != want {
				t.Errorf("%s, the claim of %s: %+v, %v", when, user, c, err)
			}
			list, err := r.Node.Claims.OfUser(t.Context(), user, dibs.Page{})
			if err != nil || len(list.Items) != 1 || list.Items[0].Reference != want {
				t.Errorf("%s, the list of %s: %+v, %v", when, user, list.Items, err)
			}
			if again := refer(r, user, "k", want); !again.Replayed || again.Claim.Reference != want && want != "" {
				t.Errorf("%s, the repeat of %s: %+v", when, user, again)
			}
			if other := refer(r, user, "k", "another"); other.Outcome != dibs.KeyReused {
				t.Errorf("%s, the repeat of %s with another reference: %+v", when, user, other)
			}
		}
	}
	testnode.Unsettled(t, func() bool {
		r = testnode.New(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
		r.Publish(r.Sale("phone", 9))
		claims = map[string]dibs.Result{}
		for i := range 9 {
			user := fmt.Sprint("u", i)
			claims[user] = refer(r, user, "k", strings.Repeat("basket-", i))
		}
		check("before it is settled")
		return r.Abandon()
	})
	r.Open()
	check("after the crash")
	if err := r.Settle("phone"); err != nil {
		t.Fatal(err)
	}
	check("in the ledger")
	r.Verify()
}

// Regular orders have references too, and administrators comment on any claim.
func TestOrdersHaveNotes(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	if _, err := r.Node.Products.Create(t.Context(), dibs.ProductSpec{ID: "mug", Name: "Mug", Stock: 5}); err != nil {
		t.Fatal(err)
	}
	place := func(key, reference string) dibs.Result {
		t.Helper()
		res, err := r.Node.Orders.Place(t.Context(), orders.Request{ProductID: "mug", UserID: "u", Key: key, Reference: reference})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := place("k", "basket-7")
	if first.Claim.Reference != "basket-7" || place("k", "basket-7").Claim.Reference != "basket-7" || place("k", "other").Outcome != dibs.KeyReused {
		t.Errorf("%+v", first.Claim)
	}
	if plain := place("plain", ""); plain.Outcome != dibs.Granted || place("plain", "basket-7").Outcome != dibs.KeyReused {
		t.Errorf("%+v", plain)
	}
	r.Publish(r.Sale("phone", 1))
	flash := refer(r, "u", "k", "")
	for _, id := range []string{first.Claim.ID, flash.Claim.ID} {
		before := r.Find(id, dibs.Confirmed)
		r.Pass(time.Second)
		c, err := r.Node.Orders.Comment(t.Context(), id, "gift wrap")
		if err != nil || c.Comment != "gift wrap" || !c.UpdatedAt.After(before.UpdatedAt) || !c.CreatedAt.Equal(before.CreatedAt) {
			t.Errorf("%+v, %v", c, err)
		}
		if again := r.Find(id, dibs.Confirmed); again.Comment != "gift wrap" || !again.UpdatedAt.Equal(c.UpdatedAt) {
			t.Errorf("found again: %+v", again)
		}
	}
	if _, err := r.Node.Orders.Comment(t.Context(), first.Claim.ID, "a\nb"); !errors.Is(err, dibs.ErrInvalid) {
		t.Errorf("a comment of two lines: %v", err)
	}
	if _, err := r.Node.Orders.Comment(t.Context(), "7K3M9QX2B4TD6RWA", "x"); !errors.Is(err, dibs.ErrNotFound) {
		t.Errorf("a comment on no claim: %v", err)
	}
	r.Verify()
}
