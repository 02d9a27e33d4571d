package memengine

import (
	"hash/maphash"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestAnswersWaitForTheirBatch holds a batch in flight and another one behind
// it: what depends on a claim waits for the batch that has it, and for no earlier
// one.
func TestAnswersWaitForTheirBatch(t *testing.T) {
	now := time.Now()
	s := newShard(dibs.ShardID{Campaign: 1}, &dibs.ShardLoad{Epoch: 1}, nil)
	c := dibs.Campaign{
		Kind: dibs.Sale, State: dibs.Published, Stock: dibs.Stock{Kind: dibs.Units}, LimitPerUser: 1,
		StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	}
	s.def.Store(define(&c))
	s.remaining.Store(10)
	seed := maphash.MakeSeed()
	claim := func(user string, key uint64, want dibs.Reason) *batch {
		t.Helper()
		req := &dibs.EngineClaim{UserID: user, Key: key, Quantity: 1}
		d, wait, err := s.claim(req, maphash.String(seed, user), now.UnixMilli())
		if err != nil || d.Outcome != want {
			t.Fatalf("the claim of %s is %v, %v, want %v", user, d.Outcome, err, want)
		}
		return wait
	}
	claim("settled", 1, dibs.Granted)
	s.durable = dibs.Cursor{Epoch: 1, Seq: s.seq}
	s.cur = nil
	inFlight := claim("ann", 1, dibs.Granted)
	s.inFlight, s.cur = s.cur, nil
	cur := claim("bob", 1, dibs.Granted)
	if last := claim("cid", 1, dibs.Granted); inFlight == nil || cur == nil || inFlight == cur || last != cur {
		t.Fatalf("the batches are %p, %p, %p", inFlight, cur, last)
	}
	waits := map[string]*batch{"settled": nil, "ann": inFlight, "bob": cur, "cid": cur}
	for user, want := range waits {
		if wait := claim(user, 1, dibs.Granted); wait != want {
			t.Errorf("the repeat of %s waits for %p, want %p", user, wait, want)
		}
		if wait := claim(user, 2, dibs.LimitReached); wait != want {
			t.Errorf("the refusal of %s by the limit waits for %p, want %p", user, wait, want)
		}
	}
	c.LimitPerUser = 5
	s.def.Store(define(&c))
	for user, want := range waits {
		s.h.at(s.h.find(maphash.String(seed, user), user) - 1).claims = dibs.MaxClaimsPerUser
		if wait := claim(user, 2, dibs.TooManyClaims); wait != want {
			t.Errorf("the refusal of %s by the number of claims waits for %p, want %p", user, wait, want)
		}
	}
}

// TestTheNumberOfClaimsIsKeptWithin bounds what a record says of its user's
// claims, whose number a load does not bound, and takes it back with the record.
func TestTheNumberOfClaimsIsKeptWithin(t *testing.T) {
	h := newHolders(0)
	const more = 1 << 17
	for i := range more {
		h.add(7, "ann", h.find(7, "ann"), record{seq: uint32(i)})
		if got, want := h.at(h.find(7, "ann")-1).claims, min(i+1, dibs.MaxClaimsPerUser); int(got) != want {
			t.Fatalf("after %d claims the record says %d, want %d", i+1, got, want)
		}
	}
	for range more - 5 {
		h.pop(7)
	}
	if got := h.at(h.find(7, "ann") - 1).claims; got != 5 {
		t.Errorf("with 5 claims left the record says %d", got)
	}
}
