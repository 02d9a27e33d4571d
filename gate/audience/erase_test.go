package audience

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// A user is taken out of a list of several parts: who asks hears it, the others
// stay, and a node that has the list in memory loads it anew.
func TestEraseUserFromLists(t *testing.T) {
	ctx, l := t.Context(), ledger(t)
	k := NewKeeper(Config{Store: l, Every: time.Millisecond})
	t.Cleanup(k.Close)
	var users strings.Builder
	const n = 20_000
	for i := range n {
		fmt.Fprintf(&users, "user-number-%d\n", i)
	}
	for _, id := range []string{"all", "vip"} {
		if _, err := k.Import(ctx, id, strings.NewReader(users.String()), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.Import(ctx, "others", strings.NewReader("ann\nbob\n"), nil); err != nil {
		t.Fatal(err)
	}
	c := &dibs.Campaign{ID: "c", Gate: &dibs.GateSpec{Audience: &dibs.AudienceSpec{List: "vip"}}}
	k.Start(ctx, func() []*dibs.Campaign { return []*dibs.Campaign{c} })
	const gone = "user-number-12345"
	if lists, err := k.ListsOf(ctx, gone); err != nil || fmt.Sprint(lists) != "[all vip]" {
		t.Fatalf("%v %v", lists, err)
	}
	if got, err := k.EraseUser(ctx, gone); err != nil || got != 2 {
		t.Fatalf("%d %v", got, err)
	}
	if got, err := k.EraseUser(ctx, gone); err != nil || got != 0 {
		t.Errorf("again: %d %v", got, err)
	}
	if lists, err := k.ListsOf(ctx, gone); err != nil || len(lists) != 0 {
		t.Errorf("%v %v", lists, err)
	}
	passes := func(user string) bool {
		_, ok := k.Pass(ctx, c, &dibs.ClaimRequest{CampaignID: "c", UserID: user})
		return ok
	}
	over := time.After(time.Minute)
	for tick := time.NewTicker(time.Millisecond); passes(gone); {
		select {
		case <-tick.C:
		case <-over:
			t.Fatal("the node has not heard")
		}
	}
	a, err := l.Audience(ctx, "vip")
	if err != nil || a.Users != n-1 || !passes("user-number-0") || !passes("user-number-19999") {
		t.Errorf("%+v %v", a, err)
	}
}
