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

// testAudiences uploads lists in parts. A version is visible only once it is
// finished, and replaces the one before with all its parts. An older version
// never replaces a newer one, and dropping never takes the parts of the version
// that counts. A part is replaced by compare-and-set on the number of users.
func testAudiences(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	wants(t, "a list that there is not", errOf(l.Campaigns.Audience(ctx, "vip")), dibs.ErrNotFound)
	// A part whose answer was lost is sent again.
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 1, 0, []byte("one")))
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 1, 0, []byte("one")))
	wants(t, "a list that is not finished", errOf(l.Campaigns.Audience(ctx, "vip")), dibs.ErrNotFound)
	first := &dibs.Audience{ID: "vip", Version: 1, Users: 3, Seed: []byte("seed"), UpdatedAt: start}
	f.must(l.Audiences.FinishAudience(ctx, first))
	same(t, "the list", *try(l.Campaigns.Audience(ctx, "vip")).must(t), *first)
	same(t, "its part", string(try(l.Audiences.AudiencePart(ctx, "vip", 1, 0)).must(t)), "one")
	wants(t, "a part beyond the last", errOf(l.Audiences.AudiencePart(ctx, "vip", 1, 1)), dibs.ErrNotFound)

	// The next version takes its place at once, with its own parts.
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 2, 0, []byte("two")))
	f.must(l.Audiences.PutAudiencePart(ctx, "vip", 3, 0, []byte("broken off")))
	second := &dibs.Audience{ID: "vip", Version: 2, Users: 5, Seed: []byte("other"), UpdatedAt: start.Add(time.Second)}
	f.must(l.Audiences.FinishAudience(ctx, second))
	wants(t, "a part of the version before", errOf(l.Audiences.AudiencePart(ctx, "vip", 1, 0)), dibs.ErrNotFound)
	// Two uploads ran at once, and the older one ends last.
	wants(t, "an older version", l.Audiences.FinishAudience(ctx, first), dibs.ErrConflict)
	f.must(l.Audiences.DropAudience(ctx, "vip", 3))
	wants(t, "a part of a version that was dropped",
		errOf(l.Audiences.AudiencePart(ctx, "vip", 3, 0)), dibs.ErrNotFound)
	// The process that finished version 2 lost the answer, and cleans up.
	f.must(l.Audiences.DropAudience(ctx, "vip", 2))
	part := try(l.Audiences.AudiencePart(ctx, "vip", 2, 0)).must(t)
	same(t, "a part of the version that counts, after a drop", string(part), "two")
	wants(t, "a part of a version before, replaced", l.Audiences.ReplaceAudiencePart(ctx, first, 0, []byte("x"), 1), dibs.ErrConflict)
	f.must(l.Audiences.ReplaceAudiencePart(ctx, second, 0, []byte("less"), 4))
	// The number of users has gone from 5 to 4, and the caller still has 5.
	wants(t, "a part replaced twice", l.Audiences.ReplaceAudiencePart(ctx, second, 0, []byte("x"), 4), dibs.ErrConflict)
	second.Users = 4
	same(t, "a part that was replaced", string(try(l.Audiences.AudiencePart(ctx, "vip", 2, 0)).must(t)), "less")
	f.must(l.Audiences.FinishAudience(ctx, &dibs.Audience{ID: "all", Version: 1, UpdatedAt: start, Seed: []byte("s")}))
	list := try(l.Audiences.AudienceList(ctx, dibs.Page{Limit: 1})).must(t)
	same(t, "the first list", list.Items[0].ID, "all")
	list = try(l.Audiences.AudienceList(ctx, dibs.Page{Limit: 1, Cursor: list.NextCursor})).must(t)
	same(t, "the second list", list, dibs.List[dibs.Audience]{Items: []dibs.Audience{*second}})
}

// testFollowers lets users follow and leave. Following twice counts once; every
// change takes the next number of the merchant, by which nodes read what is
// new; lists go by rank, then by time, page by page. A node that reads the
// changes after the last number that it knows has missed nothing, so every
// change needs a number, and a call that changes nothing takes none.
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
		same(t, "changed", try(l.Audiences.Follow(ctx, "shop", list, follows)).must(t), want)
	}
	wants(t, "a merchant without followers", errOf(l.Audiences.Merchant(ctx, "shop")), dibs.ErrNotFound)
	follow(who(0, "ann", "bob"), true, 2)
	// bob's new rank is stored but counts as no change; cid comes twice and counts
	// once.
	follow(who(5, "bob", "cid", "cid"), true, 1)
	follow(who(0, "nobody"), false, 0)
	follow(who(0, "ann"), false, 1)
	m := try(l.Audiences.Merchant(ctx, "shop")).must(t)
	same(t, "the merchant", *m, gate.Merchant{ID: "shop", Followers: 2, Seq: 4})
	page := try(l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 1})).must(t)
	same(t, "the first follower: of equals the one who has followed longest", page.Items, who(5, "bob"))
	page = try(l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 1, Cursor: page.NextCursor})).must(t)
	same(t, "the second", page, dibs.List[gate.Follower]{Items: who(5, "cid")})
	// Each user appears once, with their last change: cid took number 3, ann 4.
	changes := try(l.Audiences.FollowerChanges(ctx, "shop", 1, 10)).must(t)
	same(t, "changes", changes, []gate.FollowerChange{{User: "bob", Follows: true, Seq: 2}, {User: "cid", Follows: true, Seq: 3}, {User: "ann", Follows: false, Seq: 4}})
	follow(who(1, "ann"), true, 1)
	changes = try(l.Audiences.FollowerChanges(ctx, "shop", 4, 10)).must(t)
	same(t, "the last change", changes, []gate.FollowerChange{{User: "ann", Follows: true, Seq: 5}})
	// A page that ends among equals goes on with them, and then with those below.
	follow(who(2, "dan", "eva"), true, 2)
	page = try(l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 1})).must(t)
	page = try(l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 2, Cursor: page.NextCursor})).must(t)
	same(t, "the second and third", page.Items, append(who(5, "cid"), who(2, "dan")...))
	page = try(l.Audiences.Followers(ctx, "shop", dibs.Page{Limit: 2, Cursor: page.NextCursor})).must(t)
	same(t, "the last", page, dibs.List[gate.Follower]{Items: append(who(2, "eva"), who(1, "ann")...)})
}

// testFollowersRace lets users come from two connections at once, while changes
// are read: none is missed, and each has a number of its own. A number must not
// show before a smaller one does: the reader would go on from it and never see
// the other. So an implementation gives numbers in the order in which changes
// are committed.
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
		changes := try(f.ledger().Audiences.FollowerChanges(ctx, "shop", after, 1000)).must(t)
		for _, c := range changes {
			seen[c.User], after = true, c.Seq
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	// One more reading follows the end of the writers.
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
	m := try(f.ledger().Audiences.Merchant(ctx, "shop")).must(t)
	same(t, "followers", *m, gate.Merchant{ID: "shop", Followers: 2 * each, Seq: 2 * each})
}
