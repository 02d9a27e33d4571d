package audience_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/gate/audience"
)

// book keeps followers in memory.
type book struct {
	gate.AudienceLedger
	users []string
	calls int
}

func (b *book) Follow(_ context.Context, _ string, users []gate.Follower, _ bool) (int64, error) {
	b.calls++
	for _, u := range users {
		b.users = append(b.users, u.User+strings.Repeat("*", int(u.Rank)))
	}
	return int64(len(users)), nil
}

func (b *book) Merchant(context.Context, string) (*gate.Merchant, error) {
	return &gate.Merchant{Followers: int64(len(b.users))}, nil
}

func TestImportFollowers(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string
		bad  []string
	}{
		{"user,rank\nann,2\n\nbob\n\"cid\", 1\r\n", []string{"ann**", "bob", "cid*"}, nil},
		{"\ufeffuser_id\nann\n", []string{"ann"}, nil},
		{"rank\n", []string{"rank"}, nil},
		{"ann\nuser,rank\n4 2\nbob,x\nbob,1,2\n,3\n", nil, []string{"/lines/2", "/lines/3", "/lines/4", "/lines/5", "/lines/6"}},
		// Long before the bad line, there is enough for some transactions.
		{strings.Repeat("ann\n", 5000) + "b b\n", nil, []string{"/lines/5001"}},
		{"ann\n" + strings.Repeat("x", 5000) + "\n", nil, []string{"/lines/2"}},
	} {
		b := &book{}
		v, err := audience.ImportFollowers(t.Context(), b, "shop", strings.NewReader(c.file), nil)
		var refusal *dibs.Error
		if c.bad == nil {
			if err != nil || !slices.Equal(b.users, c.want) || v.Imported != int64(len(c.want)) || v.New != v.Imported || v.Followers != v.New {
				t.Errorf("%q: %+v, %v, %v", c.file, v, b.users, err)
			}
			continue
		}
		if !errors.As(err, &refusal) || b.calls > 0 {
			t.Errorf("%q: %v after %d calls", c.file, err, b.calls)
			continue
		}
		var fields []string
		for _, f := range refusal.Faults {
			fields = append(fields, f.Field)
		}
		if !slices.Equal(fields, c.bad) {
			t.Errorf("%q: %v", c.file, fields)
		}
	}
	b, told := &book{}, []int64{}
	if _, err := audience.ImportFollowers(t.Context(), b, "shop", strings.NewReader(strings.Repeat("ann\n", 4100)), func(n int64) { told = append(told, n) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told, []int64{2000, 4000, 4100}) {
		t.Errorf("told of %v", told)
	}
	var refusal *dibs.Error
	if _, err := audience.ImportFollowers(t.Context(), b, "a shop", strings.NewReader("ann"), nil); !errors.As(err, &refusal) || refusal.Faults[0].Field != "/id" {
		t.Errorf("a shop: %v", err)
	}
}
