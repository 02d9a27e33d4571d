package ledgertest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/ledger"
)

func testKeys(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	first := &access.APIKey{ID: "k1", Name: "till", Role: access.RoleAdmin, Hash: []byte("hash one"), CreatedAt: start}
	second := &access.APIKey{ID: "k2", Name: "web", Role: access.RoleAdmin, Hash: []byte("hash two"), CreatedAt: start.Add(time.Second)}
	f.must(l.Access.InsertKey(ctx, first))
	f.must(l.Access.InsertKey(ctx, second))
	wants(t, "an id that is taken", l.Access.InsertKey(ctx, &access.APIKey{ID: "k1", Hash: []byte("x")}), dibs.ErrAlreadyExists)
	wants(t, "a hash that is taken", l.Access.InsertKey(ctx, &access.APIKey{ID: "k3", Hash: []byte("hash one")}), dibs.ErrAlreadyExists)
	got, err := l.Access.KeyByHash(ctx, []byte("hash one"))
	f.must(err)
	same(t, "the key", *got, *first)
	_, err = l.Access.KeyByHash(ctx, []byte("hash"))
	wants(t, "an unknown hash", err, dibs.ErrNotFound)

	at := start.Add(time.Minute)
	f.must(l.Access.RevokeKey(ctx, "k1", at))
	f.must(l.Access.RevokeKey(ctx, "k1", at.Add(time.Hour)))
	wants(t, "revoke an unknown key", l.Access.RevokeKey(ctx, "none", at), dibs.ErrNotFound)
	_, err = l.Access.KeyByHash(ctx, []byte("hash one"))
	wants(t, "a revoked key", err, dibs.ErrNotFound)
	keys, err := l.Access.Keys(ctx)
	f.must(err)
	first.RevokedAt = at
	same(t, "all keys", keys, []access.APIKey{*second, *first})
}

func testRequests(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	r := &access.StoredRequest{Caller: "k1", Key: "a", Hash: []byte("h"), Status: 201, Body: []byte(`{"id":"x"}`), At: start}
	f.must(l.Access.SaveRequest(ctx, r))
	wants(t, "a request saved twice", l.Access.SaveRequest(ctx, r), dibs.ErrAlreadyExists)
	other := &access.StoredRequest{Caller: "k2", Key: "a", Hash: []byte("h"), Status: 204, At: start.Add(time.Hour)}
	f.must(l.Access.SaveRequest(ctx, other))
	got, err := l.Access.Request(ctx, "k1", "a")
	f.must(err)
	same(t, "the answer", *got, *r)
	got, err = l.Access.Request(ctx, "k2", "a")
	f.must(err)
	same(t, "the other caller's answer", got.Status, 204)
	_, err = l.Access.Request(ctx, "k1", "b")
	wants(t, "another key", err, dibs.ErrNotFound)
	f.must(l.Access.DropRequests(ctx, start.Add(time.Hour)))
	_, err = l.Access.Request(ctx, "k1", "a")
	wants(t, "a request that was dropped", err, dibs.ErrNotFound)
	_, err = l.Access.Request(ctx, "k2", "a")
	f.must(err)
}

// testSecrets asks on two connections at once: everybody gets the same.
func testSecrets(t *testing.T, f *fixture) {
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	type answer struct {
		secret []byte
		err    error
	}
	answers := make(chan answer)
	for i := range 8 {
		go func() {
			b, err := ledgers[i%2].Database.Secret(t.Context(), "claim-ids", 32)
			answers <- answer{b, err}
		}()
	}
	first := <-answers
	f.must(first.err)
	same(t, "the secret's size", len(first.secret), 32)
	for range 7 {
		a := <-answers
		f.must(a.err)
		if !bytes.Equal(a.secret, first.secret) {
			t.Error("two callers got different secrets")
		}
	}
	again, err := f.ledger().Database.Secret(t.Context(), "claim-ids", 32)
	f.must(err)
	other, err := f.ledger().Database.Secret(t.Context(), "tokens", 32)
	f.must(err)
	if !bytes.Equal(again, first.secret) || bytes.Equal(other, first.secret) || bytes.Equal(other, make([]byte, 32)) {
		t.Error("a secret changed, or two names share one")
	}
}

// testLifetime closes the ledger and opens it again; and calls it with a
// context that has ended, and after the end.
func testLifetime(t *testing.T, f *fixture) {
	c := f.insert(campaign("c", 10))
	_, s := f.load(c, 0)
	s.grant("u1", 1)
	f.settle(s)
	f.must(f.ledger().Database.Ping(t.Context()))

	over, cancel := context.WithCancel(t.Context())
	cancel()
	s.grant("u2", 1)
	wants(t, "settle with a context that has ended", f.ledger().Live.Settle(over, []dibs.Batch{s.peek()}), context.Canceled)
	_, err := f.ledger().Live.Campaign(over, "c")
	wants(t, "read with a context that has ended", err, context.Canceled)
	f.settle(s)

	f.must(f.ledger().Database.Close())
	wants(t, "ping after the end", f.ledger().Database.Ping(t.Context()), dibs.ErrUnavailable)
	wants(t, "settle after the end", f.ledger().Live.Settle(t.Context(), []dibs.Batch{s.peek()}), dibs.ErrUnavailable)
	f.l = f.open()
	got, err := f.ledger().Live.Campaign(t.Context(), "c")
	f.must(err)
	same(t, "the campaign's number", got.Number, c.Number)
	same(t, "claims", f.clean(c).Claims, int64(2))
}

func testTrail(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	var acts []*access.Act
	for i := range 3 {
		acts = append(acts, &access.Act{
			ID: access.NewActID(at(i)), At: at(i), Key: "k1", KeyName: "till", Role: access.RoleEditor, Address: "2001:db8::1", RequestID: "r",
			Action: "publish-campaign", Target: "/v1/campaigns/phone", Before: []byte(`{"state":"draft"}`),
		})
	}
	acts[1].Key, acts[2].Target, acts[2].Action = "k2", "/v1/campaigns/other", "end-campaign"
	f.must(l.Access.SaveActs(ctx, acts[:2]))
	done := *acts[0]
	done.Status, done.After = 200, []byte(`{"state":"published"}`)
	// One is completed, one is new.
	f.must(l.Access.SaveActs(ctx, []*access.Act{&done, acts[2]}))
	f.must(l.Access.SaveActs(ctx, []*access.Act{&done}))
	list := func(filter access.ActFilter) []access.Act {
		t.Helper()
		got, err := l.Access.Acts(ctx, filter, dibs.Page{})
		f.must(err)
		return got.Items
	}
	same(t, "all acts", list(access.ActFilter{}), []access.Act{*acts[2], *acts[1], done})
	same(t, "those of a key", list(access.ActFilter{Key: "k2"}), []access.Act{*acts[1]})
	same(t, "those on a thing", list(access.ActFilter{Target: "/v1/campaigns/other"}), []access.Act{*acts[2]})
	same(t, "those of an action", list(access.ActFilter{Action: "end-campaign"}), []access.Act{*acts[2]})
	same(t, "those of a time", list(access.ActFilter{Since: at(1), Until: at(2)}), []access.Act{*acts[1]})
	page, err := l.Access.Acts(ctx, access.ActFilter{}, dibs.Page{Limit: 2})
	f.must(err)
	same(t, "the first page", len(page.Items), 2)
	page, err = l.Access.Acts(ctx, access.ActFilter{}, dibs.Page{Limit: 2, Cursor: page.NextCursor})
	f.must(err)
	same(t, "the second page", page.Items, []access.Act{done})
	same(t, "the end", page.NextCursor, "")
	f.must(l.Access.DropActs(ctx, at(2)))
	same(t, "acts after the older ones were dropped", list(access.ActFilter{}), []access.Act{*acts[2]})
}
