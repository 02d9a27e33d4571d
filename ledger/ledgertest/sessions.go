package ledgertest

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

// testSessions stores sessions of two keys, ends one, and lists those that last. A session ends
// with its key, whether that was revoked or expired, and with its time.
func testSessions(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger().Sessions
	ids := func(key string, at time.Time) (list []string) {
		t.Helper()
		all := try(l.Sessions(ctx, key, at)).must(t)
		for i := range all {
			list = append(list, all[i].ID)
		}
		return list
	}
	for _, key := range []string{"k1", "k2"} {
		f.must(f.ledger().Access.InsertKey(ctx, &access.APIKey{ID: key, Name: key, Role: access.RoleAdmin, Hash: []byte(key), CreatedAt: start}))
	}
	first := access.Session{ID: "s1", Key: "k1", Address: "2001:db8::1", Agent: "浏览器", CreatedAt: at(0), LastUsedAt: at(0), ExpiresAt: at(60)}
	first.Name = "k1"
	for i, s := range []access.Session{first, {ID: "s2", Key: "k1", CreatedAt: at(1), LastUsedAt: at(1), ExpiresAt: at(30)}, {ID: "s3", Key: "k2", CreatedAt: at(2), LastUsedAt: at(2), ExpiresAt: at(60)}} {
		f.must(l.InsertSession(ctx, &s))
		same(t, "sessions", len(ids("", at(3))), i+1)
	}
	same(t, "the session", *try(l.Session(ctx, "s1")).must(t), first)
	wants(t, "an unknown session", errOf(l.Session(ctx, "none")), dibs.ErrNotFound)
	same(t, "all", ids("", at(3)), []string{"s3", "s2", "s1"})
	same(t, "those of a key", ids("k1", at(3)), []string{"s2", "s1"})
	same(t, "those that last", ids("k1", at(30)), []string{"s1"})

	f.must(l.TouchSessions(ctx, map[string]time.Time{"s1": at(9), "none": at(9)}))
	f.must(l.TouchSessions(ctx, map[string]time.Time{"s1": at(8)}))
	f.must(l.EndSession(ctx, "s1", at(10)))
	f.must(l.EndSession(ctx, "s1", at(11)))
	wants(t, "end an unknown session", l.EndSession(ctx, "none", at(1)), dibs.ErrNotFound)
	got := try(l.Session(ctx, "s1")).must(t)
	same(t, "last use and end", []time.Time{got.LastUsedAt, got.EndedAt}, []time.Time{at(9), at(10)})
	same(t, "without the ended one", ids("", at(12)), []string{"s3", "s2"})

	f.must(f.ledger().Access.RevokeKey(ctx, "k1", at(12)))
	f.must(f.ledger().Access.ExpireKey(ctx, "k2", at(20)))
	same(t, "without the revoked key's", ids("", at(13)), []string{"s3"})
	same(t, "without the expired key's", ids("", at(20)), []string(nil))
	f.must(l.DropSessions(ctx, at(31)))
	wants(t, "a session that was dropped", errOf(l.Session(ctx, "s2")), dibs.ErrNotFound)
	f.must(errOf(l.Session(ctx, "s3")))
}

// testSignIns stores a person's session with its key, once, and revokes the key with the session. Keys of people are
// dropped some time after their end, and other keys never.
func testSignIns(t *testing.T, f *fixture) {
	ctx, l, keys := t.Context(), f.ledger().Sessions, f.ledger().Access
	key := func(id string) *access.APIKey {
		return &access.APIKey{ID: id, Name: "ann@shop.example", Role: access.RoleAdmin, Hash: []byte(id), CreatedAt: start, ExpiresAt: at(60), Person: "https://login.example 安"}
	}
	is := &access.Session{ID: "s1", Key: "k1", CreatedAt: start, LastUsedAt: start, ExpiresAt: at(60)}
	for i, k := range []*access.APIKey{key("k1"), key("k2")} {
		same(t, "stored", try(l.InsertSignIn(ctx, k, is)).must(t), i == 0)
	}
	same(t, "the key", *try(keys.KeyByHash(ctx, []byte("k1"))).must(t), *key("k1"))
	wants(t, "the key of a sign-in that was not stored", errOf(keys.KeyByHash(ctx, []byte("k2"))), dibs.ErrNotFound)
	same(t, "the name", try(l.Session(ctx, "s1")).must(t).Name, "ann@shop.example")

	made := key("made")
	made.Person = ""
	f.must(keys.InsertKey(ctx, made))
	other := &access.Session{ID: "s2", Key: "made", CreatedAt: start, LastUsedAt: start, ExpiresAt: at(60)}
	f.must(l.InsertSession(ctx, other))
	f.must(l.EndSession(ctx, "s1", at(1)))
	f.must(l.EndSession(ctx, "s2", at(1)))
	wants(t, "the key of an ended sign-in", errOf(keys.KeyByHash(ctx, []byte("k1"))), dibs.ErrNotFound)
	f.must(errOf(keys.KeyByHash(ctx, []byte("made"))))

	f.must(l.DropSignIns(ctx, at(60)))
	same(t, "keys before their time", len(try(keys.Keys(ctx)).must(t)), 2)
	f.must(l.DropSignIns(ctx, at(61)))
	all := try(keys.Keys(ctx)).must(t)
	same(t, "keys", len(all), 1)
	same(t, "the key that was made", all[0].ID, "made")
}

// testPendingSignIns keeps people who wait for a command line, each for one use of the code and its challenge, and not
// beyond their time.
func testPendingSignIns(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger().Sessions
	ann := access.Person{Subject: "https://login.example 安", Name: "ann@shop.example", Role: access.RoleAdmin}
	keep := func(code string, until, now int, want bool) {
		t.Helper()
		stored := try(l.InsertPending(ctx, &access.PendingSignIn{Hash: []byte(code), Person: ann, Challenge: "proof", Until: at(until)}, 2, at(now))).must(t)
		same(t, "stored "+code, stored, want)
	}
	refused := func(what, code, challenge string, now int) {
		t.Helper()
		wants(t, what, errOf(l.TakePending(ctx, []byte(code), challenge, at(now))), dibs.ErrNotFound)
	}
	keep("one", 60, 0, true)
	keep("two", 30, 0, true)
	keep("three", 60, 0, false)
	keep("three", 90, 30, true)
	refused("another challenge", "one", "other", 1)
	refused("an unknown code", "four", "proof", 1)
	refused("one that is too old", "two", "proof", 30)
	same(t, "the person", try(l.TakePending(ctx, []byte("one"), "proof", at(59))).must(t), ann)
	refused("one that was used", "one", "proof", 59)
	f.must(l.DropPending(ctx, at(31)))
	f.must(l.DropPending(ctx, at(90)))
	f.must(errOf(l.TakePending(ctx, []byte("three"), "proof", at(89))))
	refused("one that was dropped", "two", "proof", 1)
}
