package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/ledger"

	"github.com/dibs-dev/dibs/gate"
)

func testAudiences(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	_, err := l.Campaigns.Audience(ctx, "vip")
	wants(t, "a list that there is not", err, dibs.ErrNotFound)
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 1, 0, []byte("one")))
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 1, 0, []byte("one")))
	_, err = l.Campaigns.Audience(ctx, "vip")
	wants(t, "a list that is not finished", err, dibs.ErrNotFound)
	first := &dibs.Audience{ID: "vip", Version: 1, Users: 3, Seed: []byte("seed"), UpdatedAt: start}
	f.must(l.Audiences.FinishAudience(ctx, first))
	got, err := l.Campaigns.Audience(ctx, "vip")
	f.must(err)
	same(t, "the list", *got, *first)
	part, err := l.Audiences.AudiencePart(ctx, "vip", 1, 0)
	f.must(err)
	same(t, "its part", string(part), "one")
	_, err = l.Audiences.AudiencePart(ctx, "vip", 1, 1)
	wants(t, "a part beyond the last", err, dibs.ErrNotFound)

	// The next version takes its place at once, with its own parts.
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 2, 0, []byte("two")))
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 3, 0, []byte("broken off")))
	second := &dibs.Audience{ID: "vip", Version: 2, Users: 5, Seed: []byte("other"), UpdatedAt: start.Add(time.Second)}
	f.must(l.Audiences.FinishAudience(ctx, second))
	_, err = l.Audiences.AudiencePart(ctx, "vip", 1, 0)
	wants(t, "a part of the version before", err, dibs.ErrNotFound)
	wants(t, "an older version", l.Audiences.FinishAudience(ctx, first), dibs.ErrConflict)
	f.must(l.Audiences.DropAudience(ctx, "vip", 3))
	_, err = l.Audiences.AudiencePart(ctx, "vip", 3, 0)
	wants(t, "a part of a version that was dropped", err, dibs.ErrNotFound)
	f.must(l.Audiences.DropAudience(ctx, "vip", 2))
	part, err = l.Audiences.AudiencePart(ctx, "vip", 2, 0)
	f.must(err)
	same(t, "a part of the version that counts, after a drop", string(part), "two")
	wants(t, "a part of a version before, replaced", l.Audiences.ReplaceAudiencePart(ctx, first, 0, []byte("x"), 1), dibs.ErrConflict)
	f.must(l.Audiences.ReplaceAudiencePart(ctx, second, 0, []byte("less"), 4))
	wants(t, "a part replaced twice", l.Audiences.ReplaceAudiencePart(ctx, second, 0, []byte("x"), 4), dibs.ErrConflict)
	second.Users = 4
	part, err = l.Audiences.AudiencePart(ctx, "vip", 2, 0)
	f.must(err)
	same(t, "a part that was replaced", string(part), "less")
	f.must(l.Audiences.FinishAudience(ctx, &dibs.Audience{ID: "all", Version: 1, UpdatedAt: start, Seed: []byte("s")}))
	list, err := l.Audiences.AudienceList(ctx, dibs.Page{Limit: 1})
	f.must(err)
	same(t, "the first list", list.Items[0].ID, "all")
	list, err = l.Audiences.AudienceList(ctx, dibs.Page{Limit: 1, Cursor: list.NextCursor})
	f.must(err)
	same(t, "the second list", list, dibs.List[dibs.Audience]{Items: []dibs.Audience{*second}})
}

func testFollowers(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	who := func(rank int64, users ...string) (list []gate.Follower) {
		for _, u := range users {
			list = append(list, gate.Follower{User: u, Rank: rank, Since: start})
		}
		return list
	}
	follow := func(list []gate.Follower, follows bool, want int64) {
		t.Helper()
		n, err := l.Audiences.Follow(ctx, "shop", list, follows)
		f.must(err)
		same(t, "changed", n, want)
	}
	_, err := l.Audiences.Merchant(ctx, "shop")
	wants(t, "a merchant whom nobody follows", err, dibs.ErrNotFound)
	follow(who(0, "ann", "bob"), true, 2)
	follow(who(5, "bob", "cid", "cid"), true, 1)
	follow(who(0, "nobody"), false, 0)
	follow(who(0, "ann"), false, 1)
	m, err := l.Audiences.Merchant(ctx, "shop")
	f.must(err)
	same(t, "the merchant", *m, gate.Merchant{ID: "shop", Followers: 2, Seq: 4})
	page, err := l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 1})
	f.must(err)
	same(t, "the first follower: of equals who has followed longest", page.Items, who(5, "bob"))
	page, err = l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 1, Cursor: page.NextCursor})
	f.must(err)
	same(t, "the second", page, dibs.List[gate.Follower]{Items: who(5, "cid")})
	changes, err := l.Audiences.FollowerChanges(ctx, "shop", 1, 10)
	f.must(err)
	same(t, "changes", changes, []gate.FollowerChange{{User: "bob", Follows: true, Seq: 2}, {User: "cid", Follows: true, Seq: 3}, {User: "ann", Follows: false, Seq: 4}})
	follow(who(1, "ann"), true, 1)
	changes, err = l.Audiences.FollowerChanges(ctx, "shop", 4, 10)
	f.must(err)
	same(t, "the last change", changes, []gate.FollowerChange{{User: "ann", Follows: true, Seq: 5}})
	// A page that ends among equals goes on with them, and then with those below.
	follow(who(2, "dan", "eva"), true, 2)
	page, err = l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 1})
	f.must(err)
	page, err = l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 2, Cursor: page.NextCursor})
	f.must(err)
	same(t, "the second and third", page.Items, append(who(5, "cid"), who(2, "dan")...))
	page, err = l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 2, Cursor: page.NextCursor})
	f.must(err)
	same(t, "the last", page, dibs.List[gate.Follower]{Items: append(who(2, "eva"), who(1, "ann")...)})
}

// testFollowersRace lets users come from two connections at once, while changes
// are read: none is missed, and each has a number of its own.
func testFollowersRace(t *testing.T, f *fixture) {
	ctx := t.Context()
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	const each = 20
	var all sync.WaitGroup
	failed := make(chan error, 2)
	for i, l := range ledgers {
		all.Go(func() {
			for n := range each {
				_, err := l.Audiences.Follow(ctx, "shop", []gate.Follower{{User: fmt.Sprintf("u%d-%d", i, n), Since: start}}, true)
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	seen, after := map[string]bool{}, int64(0)
	read := func() {
		changes, err := f.ledger().Audiences.FollowerChanges(ctx, "shop", after, 1000)
		f.must(err)
		for _, c := range changes {
			seen[c.User], after = true, c.Seq
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	for going := true; going; {
		select {
		case <-done:
			going = false
		default:
		}
		read()
	}
	select {
	case err := <-failed:
		f.must(errors.Join(err))
	default:
	}
	same(t, "users seen", len(seen), 2*each)
	m, err := f.ledger().Audiences.Merchant(ctx, "shop")
	f.must(err)
	same(t, "followers", *m, gate.Merchant{ID: "shop", Followers: 2 * each, Seq: 2 * each})
}
