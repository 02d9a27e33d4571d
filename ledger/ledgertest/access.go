package ledgertest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// testKeys stores keys, finds them by their hash alone, and revokes one. Ids
// and hashes are unique. A revoked key is not found by its hash any more, but
// stays in the list, with the time of the first revocation. A database that
// leaks shows hashes, and no key. Revoking and expiring only ever shorten a
// key's life: a repeat, or a later time, must not give it back.
func testKeys(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	first := &access.APIKey{ID: "k1", Name: "till", Role: access.RoleAdmin, Hash: []byte("hash one"), CreatedAt: start}
	second := &access.APIKey{ID: "k2", Name: "web", Role: access.RoleAdmin, Hash: []byte("hash two"), CreatedAt: start.Add(time.Second)}
	f.must(l.Access.InsertKey(ctx, first))
	f.must(l.Access.InsertKey(ctx, second))
	wants(t, "an id that is taken", l.Access.InsertKey(ctx, &access.APIKey{ID: "k1", Hash: []byte("x")}), dibs.ErrAlreadyExists)
	wants(t, "a hash that is taken", l.Access.InsertKey(ctx, &access.APIKey{ID: "k3", Hash: []byte("hash one")}), dibs.ErrAlreadyExists)
	same(t, "the key", *try(l.Access.KeyByHash(ctx, []byte("hash one"))).must(t), *first)
	wants(t, "an unknown hash", errOf(l.Access.KeyByHash(ctx, []byte("hash"))), dibs.ErrNotFound)

	at := start.Add(time.Minute)
	f.must(l.Access.RevokeKey(ctx, "k1", at))
	// The second call changes nothing: the first time stays.
	f.must(l.Access.RevokeKey(ctx, "k1", at.Add(time.Hour)))
	wants(t, "revoke an unknown key", l.Access.RevokeKey(ctx, "none", at), dibs.ErrNotFound)
	wants(t, "a revoked key", errOf(l.Access.KeyByHash(ctx, []byte("hash one"))), dibs.ErrNotFound)
	keys := try(l.Access.Keys(ctx)).must(t)
	first.RevokedAt = at
	same(t, "all keys", keys, []access.APIKey{*second, *first})

	third := &access.APIKey{
		ID: "k3", Name: "payments", Role: access.RolePublisher, Hash: []byte("hash three"), CreatedAt: start.Add(time.Minute), ExpiresAt: at.Add(time.Hour),
		Scopes: &access.Scopes{Campaigns: []string{"phone-*"}, Actions: []string{"confirm"}}, Roots: []string{"k1", "https://login.example 安\n"},
	}
	f.must(l.Access.InsertKey(ctx, third))
	f.must(l.Access.ExpireKey(ctx, "k2", at))
	f.must(l.Access.ExpireKey(ctx, "k2", at))
	// k3 ends earlier by itself, and keeps that time.
	f.must(l.Access.ExpireKey(ctx, "k3", at.Add(2*time.Hour)))
	wants(t, "expire an unknown key", l.Access.ExpireKey(ctx, "none", at), dibs.ErrNotFound)
	// Nodes note uses late and in any order: an earlier time never replaces a later
	// one, and a key that does not exist is passed over.
	f.must(l.Access.TouchKeys(ctx, map[string]time.Time{"k3": at, "k2": at, "none": at}))
	f.must(l.Access.TouchKeys(ctx, map[string]time.Time{"k3": at.Add(-time.Second), "k2": at.Add(time.Second)}))
	third.LastUsedAt, second.LastUsedAt, second.ExpiresAt = at, at.Add(time.Second), at
	same(t, "keys with terms", try(l.Access.Keys(ctx)).must(t), []access.APIKey{*third, *second, *first})
}

// testRequests stores the answer of a request for each caller and key, once: a
// second save is refused, so that a repeat never replaces the answer that the
// first caller got. Answers from before a time are dropped. A caller whose
// answer was lost repeats its request with the key, and must get the first
// answer, not do the work again. Keys belong to a caller.
func testRequests(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	r := &access.StoredRequest{Caller: "k1", Key: "a", Hash: []byte("h"), Status: 201, Body: []byte(`{"id":"x"}`), At: start}
	f.must(l.Access.SaveRequest(ctx, r))
	wants(t, "a request saved twice", l.Access.SaveRequest(ctx, r), dibs.ErrAlreadyExists)
	other := &access.StoredRequest{Caller: "k2", Key: "a", Hash: []byte("h"), Status: 204, At: start.Add(time.Hour)}
	f.must(l.Access.SaveRequest(ctx, other))
	same(t, "the answer", *try(l.Access.Request(ctx, "k1", "a")).must(t), *r)
	same(t, "the other caller's answer", try(l.Access.Request(ctx, "k2", "a")).must(t).Status, 204)
	wants(t, "another key", errOf(l.Access.Request(ctx, "k1", "b")), dibs.ErrNotFound)
	// The time is exclusive: an answer of that very moment stays.
	f.must(l.Access.DropRequests(ctx, start.Add(time.Hour)))
	wants(t, "a request that was dropped", errOf(l.Access.Request(ctx, "k1", "a")), dibs.ErrNotFound)
	f.must(errOf(l.Access.Request(ctx, "k2", "a")))
}

// testSecrets asks on two connections at once: every call returns the same. The
// secret makes the ids of claims. Two nodes that start at once with different
// secrets would give ids that the other one cannot read.
func testSecrets(t *testing.T, f *fixture) {
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	secrets := make([][]byte, 8)
	f.together(len(secrets), func(i int) (err error) {
		secrets[i], err = ledgers[i%2].Database.Secret(t.Context(), "claim-ids", 32)
		return err
	})
	same(t, "the secret's size", len(secrets[0]), 32)
	for _, s := range secrets {
		if !bytes.Equal(s, secrets[0]) {
			t.Error("two callers got different secrets")
		}
	}
	// Another name has a secret of its own, and none is all zeros.
	again := try(f.ledger().Database.Secret(t.Context(), "claim-ids", 32)).must(t)
	other := try(f.ledger().Database.Secret(t.Context(), "tokens", 32)).must(t)
	if !bytes.Equal(again, secrets[0]) || bytes.Equal(other, secrets[0]) || bytes.Equal(other, make([]byte, 32)) {
		t.Error("a secret changed, or two names share one")
	}
}

// testLifetime closes the ledger and opens it again; and calls it with a
// context that has ended, and after the end. The service tells a call that was
// cancelled from a ledger that is away by the error: the one is its caller's
// wish, the other is tried again.
func testLifetime(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 1)
	f.settle(s)
	f.must(f.ledger().Database.Ping(t.Context()))

	// A call that is refused with an ended context must not have happened: the same batch
	// settles after it.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s.grant("u2", 1)
	wants(t, "settle with a context that has ended", f.ledger().Live.Settle(over, []live.Batch{s.peek()}), context.Canceled)
	wants(t, "read with a context that has ended", errOf(f.ledger().Live.Campaign(over, "c")), context.Canceled)
	f.settle(s)

	f.must(f.ledger().Database.Close())
	wants(t, "ping after the end", f.ledger().Database.Ping(t.Context()), dibs.ErrUnavailable)
	wants(t, "settle after the end", f.ledger().Live.Settle(t.Context(), []live.Batch{s.peek()}), dibs.ErrUnavailable)
	// Everything that was settled is there for the next process.
	f.l = f.open()
	same(t, "the campaign's number", try(f.ledger().Live.Campaign(t.Context(), "c")).must(t).Number, c.Number)
	same(t, "claims", f.clean(c).Claims, int64(2))
}

// testAdminLog stores actions when they begin and completes them when they end,
// in one call with new ones. It reads them newest first, by key, action, target
// and time, and drops the older ones. An action is stored before it is carried
// out, so that a crash in between leaves a trace of it. Completing it must not
// lose what was stored at its beginning.
func testAdminLog(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	var actions []*access.AdminAction
	for i := range 3 {
		actions = append(actions, &access.AdminAction{
			ID: access.NewAdminActionID(at(i)), At: at(i), Key: "k1", KeyName: "till", Role: access.RoleEditor, Address: "2001:db8::1", RequestID: "r",
			Action: "publish-campaign", Target: "/v1/campaigns/phone", Before: []byte(`{"state":"draft"}`),
		})
	}
	actions[1].Key, actions[2].Target, actions[2].Action = "k2", "/v1/campaigns/other", "end-campaign"
	actions[1].Target = "/v1/campaigns/phone/publish"
	f.must(l.Access.SaveAdminActions(ctx, actions[:2]))
	done := *actions[0]
	done.Status, done.After = 200, []byte(`{"state":"published"}`)
	// One is completed, one is new.
	f.must(l.Access.SaveAdminActions(ctx, []*access.AdminAction{&done, actions[2]}))
	// A repeat of the completion changes nothing.
	f.must(l.Access.SaveAdminActions(ctx, []*access.AdminAction{&done}))
	list := func(filter access.AdminActionFilter) []access.AdminAction {
		t.Helper()
		return try(l.Access.AdminActions(ctx, filter, dibs.Page{})).must(t).Items
	}
	same(t, "all actions", list(access.AdminActionFilter{}), []access.AdminAction{*actions[2], *actions[1], done})
	same(t, "those of a key", list(access.AdminActionFilter{Key: "k2"}), []access.AdminAction{*actions[1]})
	same(t, "those on a thing", list(access.AdminActionFilter{Target: "/v1/campaigns/other"}), []access.AdminAction{*actions[2]})
	same(t, "those on a thing and what is under it", list(access.AdminActionFilter{Target: "/v1/campaigns/phone"}), []access.AdminAction{*actions[1], done})
	same(t, "those on a thing with such a name", list(access.AdminActionFilter{Target: "/v1/campaigns/phon"}), []access.AdminAction{})
	same(t, "those of an action", list(access.AdminActionFilter{Action: "end-campaign"}), []access.AdminAction{*actions[2]})
	same(t, "those of a time", list(access.AdminActionFilter{Since: at(1), Until: at(2)}), []access.AdminAction{*actions[1]})
	// Three actions in pages of two: the last page has no cursor.
	page := try(l.Access.AdminActions(ctx, access.AdminActionFilter{}, dibs.Page{Limit: 2})).must(t)
	same(t, "the first page", len(page.Items), 2)
	page = try(l.Access.AdminActions(ctx, access.AdminActionFilter{}, dibs.Page{Limit: 2, Cursor: page.NextCursor})).must(t)
	same(t, "the second page", page.Items, []access.AdminAction{done})
	same(t, "the end", page.NextCursor, "")
	f.must(l.Access.DropAdminActions(ctx, at(2)))
	same(t, "actions after the older ones were dropped", list(access.AdminActionFilter{}), []access.AdminAction{*actions[2]})
}
