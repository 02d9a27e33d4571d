package audience

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

// A user who unfollows a merchant while its followers are being loaded is not among
// them, unless they come back. A user who had left before needs no memory.
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
	if f := v.(*followers).current.Load(); len(f.later) != 1 {
		t.Errorf("%d changes are kept beside the set, want 1: %v", len(f.later), f.later)
	}
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
	if _, err := Import(t.Context(), l, "vip", strings.NewReader(strings.Repeat("b b\n", 100)), nil); err == nil || strings.Count(err.Error(), "lines/") != dibs.MaxListedFaults {
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

// A file without a user is told from one with users, and from one that cannot be read as users.
func TestHasNone(t *testing.T) {
	for file, want := range map[string]bool{"": true, "user": true, "\ufeff\"user_id\"\r\n\n \n": true, "ann": false, "user\nuser\n": false, "a b\n": false} {
		if got := HasNone(strings.NewReader(file)); got != want {
			t.Errorf("%q: %v", file, got)
		}
	}
}
