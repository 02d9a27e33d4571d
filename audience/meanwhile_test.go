package audience

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

// lateError finishes a list, and says that it could not.
type lateError struct{ gate.AudienceLedger }

func (l lateError) FinishAudience(ctx context.Context, a *dibs.Audience) error {
	if err := l.AudienceLedger.FinishAudience(ctx, a); err != nil {
		return err
	}
	return dibs.Unavail(dibs.EffectUnknown, errors.New("the connection broke after the commit"))
}

// An import whose last step failed after it took effect leaves a list that can
// be loaded.
func TestImportFinishedUnheard(t *testing.T) {
	l := ledger(t)
	_, err := Import(t.Context(), l, "vip", strings.NewReader("ann"), nil)
	must(t, err)
	if _, err := Import(t.Context(), lateError{l}, "vip", strings.NewReader("bob\ncid"), nil); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("the import: %v", err)
	}
	a, err := l.Audience(t.Context(), "vip")
	must(t, err)
	set, err := Load(t.Context(), l, a)
	if err != nil || set.Len() != 2 {
		t.Fatalf("the list: %v", err)
	}
}

// moving has something happen between two pages of changes.
type moving struct {
	gate.AudienceLedger
	pages int
	after func(page int)
}

func (m *moving) FollowerChanges(ctx context.Context, id string, after int64, most int) ([]gate.FollowerChange, error) {
	list, err := m.AudienceLedger.FollowerChanges(ctx, id, after, most)
	m.pages++
	m.after(m.pages)
	return list, err
}

// Who unfollows a merchant while his followers are being loaded is none of them,
// unless he comes back; and who had left before needs no memory.
func TestUnfollowedWhileLoading(t *testing.T) {
	l := ledger(t)
	since := time.Now()
	follow := func(follows bool, users ...string) {
		t.Helper()
		list := make([]gate.Follower, len(users))
		for i, u := range users {
			list[i] = gate.Follower{User: u, Since: since}
		}
		_, err := l.Follow(t.Context(), "shop", list, follows)
		must(t, err)
	}
	crowd := func(name string, n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(name, i)
		}
		return list
	}
	follow(true, "gone")
	follow(false, "gone")
	follow(true, "ann", "bob", "cid")
	follow(true, crowd("u", changesRead)...)
	m := &moving{AudienceLedger: l, after: func(page int) {
		switch page {
		case 1:
			follow(false, "ann", "bob")
			// The next page is full, too.
			follow(true, crowd("v", changesRead)...)
		case 2:
			follow(true, "bob")
		}
	}}
	k := NewKeeper(Config{Store: m})
	defer k.Close()
	must(t, k.loadFollowers(t.Context(), "shop"))
	for user, want := range map[string]bool{"ann": false, "bob": true, "cid": true, "gone": false, "u0": true} {
		if is, loaded := k.isIn(&dibs.AudienceSpec{FollowersOf: "shop"}, user); !loaded || is != want {
			t.Errorf("%s is a follower: %v, want %v", user, is, want)
		}
	}
	v, _ := k.merchants.Load("shop")
	if f := v.(*followers).now.Load(); len(f.later) != 1 {
		t.Errorf("%d changes are kept beside the set, want 1: %v", len(f.later), f.later)
	}
}
