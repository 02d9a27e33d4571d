package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// book is what the simulated people know, and what the servers decided. It is
// what the promises are held against.
// mu guards grants, openings and requests. offers is filled before people act and
// only read from then on. An entry in the book never changes.
type book struct {
	mu sync.Mutex
	// grants are the entries that grant, by place: servers of two histories may
	// have decided different ones at one place.
	grants map[dibs.Position][]*decided
	// openings are the beginnings of epochs that the ledger has settled.
	openings map[dibs.ShardID][]opened
	requests []*request
	offers   []*offer
}

// decided is a journal entry with a name of its own: two servers of one history
// share it, two that decided something at the same place do not.
type decided struct {
	dibs.Entry
	// request is the user's request that it answers; nil for all else.
	request *request
	// on is when it was decided, by the simulation's time.
	on time.Time
}

// opened is an epoch's beginning, after which entry of the epochs before, and when
// the ledger had it.
type opened struct {
	prev  dibs.Cursor
	epoch uint16
	on    time.Time
}

// settled notes the epochs that begin in batches that the ledger has settled.
// The ledger calls it when the transaction has ended well, also when the node does
// not receive the answer.
func (b *book) settled(batches []live.Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range batches {
		for j := range batches[i].Entries {
			if e := &batches[i].Entries[j]; e.Kind == dibs.EntryOpen {
				b.openings[batches[i].Shard] = append(b.openings[batches[i].Shard], opened{e.Prev, e.Epoch, time.Now()})
			}
		}
	}
}

// gaveUp reports whether the ledger has settled the opening of an epoch that leaves
// an entry out, and had done so after the entry was decided. Then a server that had
// lost the entry was opened, and at dibs.LevelDurable the loss is allowed. An entry
// that was decided after such an opening is not excused by it.
func (b *book) gaveUp(id dibs.ShardID, d *decided) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.openings[id], func(o opened) bool {
		return d.Epoch < o.epoch && o.prev.Before(d.Cursor) && d.on.Before(o.on)
	})
}

func newBook() *book {
	return &book{grants: map[dibs.Position][]*decided{}, openings: map[dibs.ShardID][]opened{}}
}

// decide notes what a server decided.
// Only grants are kept: no promise asks who decided a release or an adjustment.
func (b *book) decide(id dibs.ShardID, d *decided) {
	if d.Kind != dibs.EntryGrant {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := dibs.Position{ShardID: id, Cursor: d.Cursor}
	b.grants[at] = append(b.grants[at], d)
}

// grantsAt returns what was granted at a place, in any history.
func (b *book) grantsAt(at dibs.Position) []*decided {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grants[at]
}

// offer is a campaign, and what admins were told about it.
// mu guards changes and what they say; all else is set before people act.
type offer struct {
	offerPlan
	id     string
	number uint32

	mu      sync.Mutex
	changes []*stockChange
}

// stockChange is a restock or a withdrawal.
type stockChange struct {
	ref   string
	delta int64
	items []string
	// done says that an admin was told that it is done.
	done bool
}

// request is a user's wish, with its key.
// mu guards what stands below it: an answer may come while the judge looks.
type request struct {
	user, key string
	offer     *offer
	quantity  int64

	mu sync.Mutex
	// yeses are the claims that the user was told of: more than one when what they
	// were told first was lost.
	yeses []*yes
	// maybe says that an attempt has no answer.
	maybe bool
}

// requestKey is the key of a context under which the engine finds the request that
// it decides.
type requestKey struct{}

// yes is a claim that a user was told is theirs.
// mu guards the flags alone. Each flag is set and never taken back.
type yes struct {
	request *request
	claim   dibs.Claim

	mu sync.Mutex
	// The steps of its user or an admin: whether each was tried, and whether the
	// answer was that it is so.
	paying, paid, cancelling, cancelled, refunding, refunded bool
}

func (y *yes) String() string {
	return fmt.Sprintf("%s's %q on %s, claim %s of %d", y.request.user, y.request.key, y.request.offer.id, y.claim.Position, y.claim.Quantity)
}

// note records an answer to a request and returns the yes when it is one. A yes
// that was told before is the same one.
// A repeat must return the place of the first answer. Another place is another yes,
// and the judge finds out whether the first one was lost by right.
func (b *book) note(r *request, res *dibs.Result) *yes {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, y := range r.yeses {
		if y.claim.Position == res.Claim.Position {
			return y
		}
	}
	y := &yes{request: r, claim: *res.Claim}
	r.yeses = append(r.yeses, y)
	return y
}

// unanswered notes that an attempt may have been granted.
func (r *request) unanswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.maybe = true
}

// told returns what the user was told.
func (r *request) told() (yeses []*yes, maybe bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.yeses, r.maybe
}

// ask adds a request.
func (b *book) ask(r *request) *request {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r)
	return r
}

// all returns the requests so far.
func (b *book) all() []*request {
	b.mu.Lock()
	defer b.mu.Unlock()
	// The capacity is cut, so that an append by a caller does not write where ask
	// will.
	return b.requests[:len(b.requests):len(b.requests)]
}
