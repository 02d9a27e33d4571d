package audience

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/gate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// TestSetIsExact builds sets of many sizes: who is in them is found, and nobody
// else is, however much alike.
func TestSetIsExact(t *testing.T) {
	l := ledger(t)
	for _, n := range []int{0, 1, 2, 15, 16, 17, 300, 5000, 30_000} {
		in := names(n)
		got, err := Import(t.Context(), l, "vip", strings.NewReader("user\n"+strings.Join(in, "\n")), nil)
		must(t, err)
		if got.Users != int64(n) || got.Duplicates != 0 {
			t.Fatalf("%d users: %+v", n, got)
		}
		set, err := Load(t.Context(), l, &got.Audience)
		must(t, err)
		for _, u := range in {
			if !set.Has(u) {
				t.Fatalf("of %d users %s is missing", n, u)
			}
			for _, other := range []string{u + "x", "0" + u, u[:len(u)-1], strings.ToUpper(u) + "."} {
				if set.Has(other) && other != "" && !contains(in, other) {
					t.Fatalf("of %d users %q is there, who is not", n, other)
				}
			}
		}
	}
}

func contains(in []string, user string) bool {
	for _, u := range in {
		if u == user {
			return true
		}
	}
	return false
}

func TestImportRefuses(t *testing.T) {
	l := ledger(t)
	_, err := Import(t.Context(), l, "vip", strings.NewReader("ann\nbob\n"), nil)
	must(t, err)
	for what, c := range map[string]struct{ file, lines string }{
		"broken lines":       {"user\nann\nb b\n\ncid,1\ndan\n中文\n", "/lines/3 /lines/5 /lines/7"},
		"a header elsewhere": {"ann\nuser name\n", "/lines/2"},
		"a long line":        {"ann\n" + strings.Repeat("x", maxLine+1) + "\n", "/lines/2"},
		"a long id":          {strings.Repeat("x", 65) + "\n", "/lines/1"},
	} {
		_, err := Import(t.Context(), l, "vip", strings.NewReader(c.file), nil)
		var e *dibs.Error
		var lines []string
		if errors.As(err, &e) {
			for _, f := range e.Faults {
				lines = append(lines, f.Field)
			}
		}
		if !errors.Is(err, dibs.ErrInvalid) || strings.Join(lines, " ") != c.lines {
			t.Errorf("%s: %v, lines %v", what, err, lines)
		}
	}
	if _, err := Import(t.Context(), l, "vip", strings.NewReader(strings.Repeat("b b\n", 100)), nil); err == nil || strings.Count(err.Error(), "lines/") != maxFaults {
		t.Errorf("a hundred bad lines: %v", err)
	}
	if a, err := l.Audience(t.Context(), "vip"); err != nil || a.Users != 2 {
		t.Errorf("after all that the list is %+v, %v", a, err)
	}
	got, err := Import(t.Context(), l, "vip", strings.NewReader("\ufeffuser_id\r\n\"ann\"\r\n ann \r\n\r\nbob"), nil)
	if err != nil || got.Users != 2 || got.Duplicates != 1 {
		t.Errorf("what spreadsheets write: %+v, %v", got, err)
	}
}

// failing fails to store from some part on.
type failing struct {
	gate.AudienceLedger
	left atomic.Int64
}

func (f *failing) PutAudiencePart(ctx context.Context, id string, version int64, part int, users []byte) error {
	if f.left.Add(-1) < 0 {
		return dibs.Unavail(dibs.EffectNone, errors.New("the ledger is away"))
	}
	return f.AudienceLedger.PutAudiencePart(ctx, id, version, part, users)
}

// An import that is broken off leaves the list as it was, and no parts.
func TestImportBrokenOff(t *testing.T) {
	l := ledger(t)
	_, err := Import(t.Context(), l, "vip", strings.NewReader("ann"), nil)
	must(t, err)
	f := &failing{AudienceLedger: l}
	f.left.Store(1)
	var stored int64
	if _, err := Import(t.Context(), f, "vip", strings.NewReader(strings.Join(names(3*partUsers), "\n")), func(n int64) { stored = n }); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if stored != partUsers {
		t.Errorf("%d users were told to be stored", stored)
	}
	a, err := l.Audience(t.Context(), "vip")
	must(t, err)
	if set, err := Load(t.Context(), l, a); err != nil || set.Len() != 1 {
		t.Errorf("the list: %v", err)
	}
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
