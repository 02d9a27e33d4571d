package audience

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/ledger/sqlledger"

	"github.com/dibs-dev/dibs/gate"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ledger(t testing.TB) *sqlledger.Ledger {
	t.Helper()
	l, err := sqlledger.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "l.db"), sqlledger.Options{Migrate: true})
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

// names are users of all shapes: numbers, short names, long ones.
func names(n int) []string {
	list := make([]string, 0, n)
	for i := range n {
		switch i % 4 {
		case 0:
			list = append(list, fmt.Sprint(i))
		case 1:
			list = append(list, fmt.Sprintf("u-%d", i))
		case 2:
			list = append(list, fmt.Sprint(100_000_000_000+i))
		default:
			list = append(list, fmt.Sprintf("01890a5d-ac96-774b-bcce-b302%08d", i))
		}
	}
	return list
}

// TestKeeper follows a list and a merchant's followers while they change.
func TestKeeper(t *testing.T) {
	l := ledger(t)
	_, err := Import(t.Context(), l, "vip", strings.NewReader("ann\nbob"), nil)
	must(t, err)
	campaigns := []*dibs.Campaign{
		{Number: 1, Gate: &dibs.GateSpec{Audience: &dibs.AudienceSpec{List: "vip"}}},
		{Number: 2, Gate: &dibs.GateSpec{Audience: &dibs.AudienceSpec{FollowersOf: "shop"}}},
		{Number: 3, Gate: &dibs.GateSpec{}},
		{Number: 4},
	}
	k := NewKeeper(Config{Store: l, Every: time.Millisecond})
	pass := func(c *dibs.Campaign, user string) dibs.Reason {
		res, ok := k.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: user})
		if ok {
			return dibs.Granted
		}
		return res.Outcome
	}
	if got := pass(campaigns[0], "ann"); got != dibs.Overloaded {
		t.Errorf("before the list is loaded: %v", got)
	}
	k.Start(t.Context(), func() []*dibs.Campaign { return campaigns })
	defer k.Close()
	want := func(c *dibs.Campaign, user string, reason dibs.Reason) {
		t.Helper()
		over := time.After(time.Minute)
		for tick := time.NewTicker(time.Millisecond); pass(c, user) != reason; {
			select {
			case <-tick.C:
			case <-over:
				t.Fatalf("%s: %v, want %v", user, pass(c, user), reason)
			}
		}
	}
	for _, c := range []struct {
		campaign int
		user     string
		reason   dibs.Reason
	}{
		{0, "ann", dibs.Granted}, {0, "cid", dibs.NotEligible}, {1, "ann", dibs.NotEligible}, {2, "cid", dibs.Granted},
	} {
		if got := pass(campaigns[c.campaign], c.user); got != c.reason {
			t.Errorf("campaign %d, %s: %v, want %v", c.campaign, c.user, got, c.reason)
		}
	}
	_, err = k.Import(t.Context(), "vip", strings.NewReader("cid"), nil)
	must(t, err)
	want(campaigns[0], "cid", dibs.Granted)
	want(campaigns[0], "ann", dibs.NotEligible)
	must(t, k.Follow(t.Context(), "shop", gate.Follower{User: "ann"}, true))
	want(campaigns[1], "ann", dibs.Granted)
	must(t, k.Follow(t.Context(), "shop", gate.Follower{User: "ann"}, false))
	want(campaigns[1], "ann", dibs.NotEligible)
	if err := k.Follow(t.Context(), "sh op", gate.Follower{User: ""}, true); !errors.Is(err, dibs.ErrInvalid) {
		t.Errorf("ids that are none: %v", err)
	}
}

// TestFirstClaimsWait: the first claims after a campaign got an audience are answered by
// it, on every node, and are not refused as overloaded.
func TestFirstClaimsWait(t *testing.T) {
	l := ledger(t)
	_, err := Import(t.Context(), l, "vip", strings.NewReader("ann"), nil)
	must(t, err)
	must(t, (&Keeper{cfg: Config{Store: l}}).Follow(t.Context(), "shop", gate.Follower{User: "ann"}, true))
	var held atomic.Pointer[[]*dibs.Campaign]
	held.Store(&[]*dibs.Campaign{})
	// No round comes by itself.
	k := NewKeeper(Config{Store: l, Every: time.Hour})
	k.Start(t.Context(), func() []*dibs.Campaign { return *held.Load() })
	defer k.Close()
	for _, a := range []*dibs.AudienceSpec{{List: "vip"}, {FollowersOf: "shop"}} {
		c := &dibs.Campaign{Number: 1, Gate: &dibs.GateSpec{Audience: a}}
		held.Store(&[]*dibs.Campaign{c})
		var all sync.WaitGroup
		for i := range 20 {
			user, want := "ann", dibs.Granted
			if i%2 == 1 {
				user, want = "bob", dibs.NotEligible
			}
			all.Go(func() {
				if res, ok := k.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: user}); ok != (want == dibs.Granted) || !ok && res.Outcome != want {
					t.Errorf("%+v, %s: %v, %+v", a, user, ok, res)
				}
			})
		}
		all.Wait()
	}
	// A list that there is not, and a caller that is gone, wait for nothing.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	c := &dibs.Campaign{Number: 2, Gate: &dibs.GateSpec{Audience: &dibs.AudienceSpec{List: "none"}}}
	held.Store(&[]*dibs.Campaign{c})
	for _, ctx := range []context.Context{t.Context(), gone} {
		if res, ok := k.Pass(ctx, c, &dibs.ClaimRequest{UserID: "ann"}); ok || res.Outcome != dibs.Overloaded || res.RetryAfter == 0 {
			t.Errorf("a list that there is not: %v, %+v", ok, res)
		}
	}
	if n := k.waiting.Load(); n != 0 {
		t.Errorf("%d claims wait", n)
	}
}

// TestRefusalNamesTheRule: who is refused learns whether a list or following the merchant decides.
func TestRefusalNamesTheRule(t *testing.T) {
	l := ledger(t)
	_, err := Import(t.Context(), l, "vip", strings.NewReader("ann"), nil)
	must(t, err)
	k := NewKeeper(Config{Store: l, Every: time.Millisecond})
	campaigns := []*dibs.Campaign{
		{Number: 1, Gate: &dibs.GateSpec{Audience: &dibs.AudienceSpec{List: "vip"}}},
		{Number: 2, Gate: &dibs.GateSpec{Audience: &dibs.AudienceSpec{FollowersOf: "shop"}}},
	}
	k.Start(t.Context(), func() []*dibs.Campaign { return campaigns })
	defer k.Close()
	for i, want := range []dibs.Text{notListed, notFollower} {
		// The first claim waits until the audience is loaded.
		res, ok := k.Pass(t.Context(), campaigns[i], &dibs.ClaimRequest{UserID: "bob"})
		if ok || res.Outcome != dibs.NotEligible || res.Detail != want {
			t.Errorf("campaign %d: %v, %+v, want %q", campaigns[i].Number, ok, res, want.EN)
		}
	}
	if notListed == notFollower {
		t.Error("both rules are told alike")
	}
}
