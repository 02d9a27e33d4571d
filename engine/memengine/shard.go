package memengine

import (
	"cmp"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

// definition is a campaign as the claim path reads it. It never changes: a newer one
// takes its place in the shard, so a claim reads one of them whole, without a lock.
type definition struct {
	campaign *dibs.Campaign
	startsMS int64
	endsMS   int64
	payInMS  int64
	limit    uint64
	// ofProduct is the limit per product, 0 for none.
	ofProduct uint64
	hasItems  bool
	// limitFirst says that the limit per user is checked before the stock.
	limitFirst bool
	closed     dibs.Reason // Paused or Ended; Granted when open
	atVersion  int64
}

// The caller must not change the campaign afterwards.
func define(c *dibs.Campaign) *definition {
	d := &definition{
		campaign: c, startsMS: c.StartsAt.UnixMilli(), endsMS: c.EndsAt.UnixMilli(),
		payInMS: c.PayWithin.Milliseconds(), limit: uint64(c.LimitPerUser), ofProduct: uint64(c.LimitPerProduct),
		hasItems: c.HasItems(), limitFirst: c.LimitFirst(), atVersion: c.Version,
	}
	switch c.State {
	case dibs.Published:
	case dibs.PausedState:
		d.closed = dibs.Paused
	default:
		d.closed = dibs.Ended
	}
	return d
}

// gate refuses by state and window.
func (d *definition) gate(nowMS int64) dibs.Reason {
	switch {
	case d.closed != dibs.Granted:
		return d.closed
	case nowMS < d.startsMS:
		return dibs.NotStarted
	case nowMS >= d.endsMS:
		return dibs.Ended
	}
	return dibs.Granted
}

// shard is one campaign shard in memory. mu guards everything below it; what
// stands above is read without it.
//
// Between two holders of mu these hold: seq is the place of the newest entry, and
// durable <= the place before cur's first. remaining + granted is the stock, and both
// agree with h. cur has the entries after those of inFlight, in order, without a gap.
// The batches have all that h, free, values and refs have beyond durable, so that undo
// can take it back newest first. While frozen is set nothing is appended.
type shard struct {
	id        dibs.ShardID
	epoch     uint16
	def       atomic.Pointer[definition]
	remaining atomic.Int64 // written under mu

	mu      *sync.Mutex // own, or that of product
	own     sync.Mutex
	product *product // nil without a limit per product
	h       *holders
	granted int64 // units granted and not released
	values  []string
	free    []uint32 // item numbers to grant, from head on
	head    int
	refs    map[string]struct{} // adjustments made

	seq       uint32 // of the newest entry, durable or not
	durable   dibs.Cursor
	durableAt int64
	settled   dibs.Cursor // what the settler told last
	cur       *batch      // collects entries
	inFlight  *batch      // is being committed
	spare     []byte
	dirty     bool  // waits in the engine's list for the committer
	frozen    error // set while the effect of a failed commit is unknown
	replaced  bool  // another shard object takes this one's place
}

// newShard returns a shard that is not open yet.
func newShard(id dibs.ShardID, load *dibs.ShardLoad, of *product) *shard {
	s := &shard{id: id, epoch: load.Epoch, h: newHolders(len(load.Holdings)), values: load.Items, refs: make(map[string]struct{}), product: of}
	s.mu = &s.own
	if of != nil {
		s.mu = &of.mu
	}
	return s
}

// The errors of a shard that cannot take an entry.
var (
	errQueueFull = &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: retryAfter}
	errSeqSpent  = dibs.Unavail(dibs.EffectNone, errors.New("memengine: the epoch has no places left"))
	errReplaced  = dibs.Unavail(dibs.EffectNone, dibs.ErrNotOpen)
	errTooNew    = dibs.Unavail(dibs.EffectNone, errors.New("memengine: the command's epoch is not open yet"))
)

// claim decides one claim. When the answer depends on entries that are not
// durable yet, it returns the batch to wait for.
//
// The caller holds s.mu, as it does for all methods below. It does not wait, and it
// allocates for grants and for what a refusal lists only.
func (s *shard) claim(req *dibs.EngineClaim, hash uint64, nowMS int64) (d dibs.Decision, wait *batch, err error) {
	def := s.def.Load()
	quantity := uint32(req.Quantity)
	// The repeat comes first: a lost yes is found whatever state, window and stock are.
	// Without a key the user is looked up only once it matters, since the crowd that is
	// refused by state, window or stock has no record.
	newest, looked := uint32(0), false
	if req.Key != 0 || req.OnlyKnown {
		newest, looked = s.h.find(hash, req.UserID), true
	}
	if req.OnlyKnown && newest == 0 {
		d.Outcome = dibs.NotFound
		return d, nil, nil
	}
	if req.Key != 0 {
		for i := newest; i != 0; i = s.h.next(i) {
			if s.h.at(i-1).key == req.Key {
				return s.repeat(i-1, quantity)
			}
		}
	}
	if req.OnlyRepeat {
		d.Outcome = dibs.Overloaded
		return d, nil, nil
	}
	if d.Outcome = def.gate(nowMS); d.Outcome != dibs.Granted && !req.Late {
		return d, nil, nil
	}
	d.Outcome = dibs.Granted
	remaining := s.remaining.Load()
	soldOut := remaining < req.Quantity
	if soldOut && !def.limitFirst {
		d.Outcome, d.Remaining = dibs.SoldOut, remaining
		return d, nil, nil
	}
	if !looked {
		newest = s.h.find(hash, req.UserID)
	}
	held, claims := uint64(0), uint16(0)
	if newest != 0 {
		r := s.h.at(newest - 1)
		held, claims = uint64(r.held), r.claims
	}
	if held+uint64(quantity) > def.limit {
		d.Outcome, d.Held = dibs.LimitReached, s.heldBy(newest)
		return d, s.pending(newest), nil
	}
	if soldOut {
		d.Outcome, d.Remaining = dibs.SoldOut, remaining
		return d, nil, nil
	}
	if s.product != nil && s.refuseOfProduct(&d, req, def.ofProduct, hash) {
		d.Held = s.heldBy(newest)
		return d, s.pending(newest), nil
	}
	if claims >= dibs.MaxClaimsPerUser {
		d.Outcome = dibs.TooManyClaims
		return d, s.pending(newest), nil
	}
	// All checks come before this line; nothing behind it can fail.
	if err := s.canAppend(); err != nil {
		return d, nil, err
	}
	d.Grant = s.grant(def, req, hash, newest, nowMS)
	return d, s.cur, nil
}

// repeat answers a request that was granted before as record i. The answer waits for
// the record's batch: a repeat must not be told a yes that a failed commit takes back.
func (s *shard) repeat(i, quantity uint32) (d dibs.Decision, wait *batch, err error) {
	if s.h.at(i).quantity != quantity {
		d.Outcome = dibs.KeyReused
		return d, s.pending(i + 1), nil
	}
	d.Replayed, d.Grant = true, s.grantOf(i)
	return d, s.pending(i + 1), nil
}

// grant takes stock and writes the entry. Nothing in it can fail.
func (s *shard) grant(def *definition, req *dibs.EngineClaim, hash uint64, newest uint32, nowMS int64) dibs.Grant {
	e := dibs.Entry{Kind: dibs.EntryGrant, At: nowMS, UserID: req.UserID, Key: req.Key, Quantity: req.Quantity, Reference: req.Reference}
	if def.payInMS > 0 {
		e.PayBy = nowMS + def.payInMS
	}
	if def.hasItems {
		e.Items = s.free[s.head : s.head+int(req.Quantity)]
		s.head += int(req.Quantity)
		s.h.keepItems(e.Items)
	}
	s.append(&e)
	q := uint32(req.Quantity)
	s.h.add(hash, req.UserID, newest, record{key: req.Key, at: nowMS, seq: s.seq, epoch: s.epoch, quantity: q, held: q})
	s.granted += req.Quantity
	s.remaining.Add(-req.Quantity)
	return dibs.Grant{
		Position: dibs.Position{ShardID: s.id, Cursor: e.Cursor}, UserID: req.UserID, Quantity: req.Quantity,
		Items: s.valuesOf(e.Items), At: nowMS, PayBy: e.PayBy,
	}
}

// heldBy lists the user's claims that are not released, newest first.
func (s *shard) heldBy(newest uint32) []dibs.Position {
	var held []dibs.Position
	for i := newest; i != 0 && len(held) < dibs.MaxHeldListed; i = s.h.next(i) {
		if r := s.h.at(i - 1); !r.released {
			held = append(held, s.positionOf(r))
		}
	}
	return held
}

func (s *shard) positionOf(r *record) dibs.Position {
	return dibs.Position{ShardID: s.id, Cursor: dibs.Cursor{Epoch: r.epoch, Seq: r.seq}}
}

// grantOf returns record i as it was granted.
func (s *shard) grantOf(i uint32) dibs.Grant {
	r := s.h.at(i)
	g := dibs.Grant{
		Position: s.positionOf(r), UserID: string(s.h.userBytes(r.user)), Quantity: int64(r.quantity),
		Items: s.valuesOf(s.h.items(i)), At: r.at, Released: r.released,
	}
	if def := s.def.Load(); def.payInMS > 0 {
		// The time to pay never changes once a campaign is published.
		g.PayBy = r.at + def.payInMS
	}
	return g
}

func (s *shard) valuesOf(numbers []uint32) []string {
	if len(numbers) == 0 {
		return nil
	}
	values := make([]string, len(numbers))
	for i, n := range numbers {
		values[i] = s.values[n]
	}
	return values
}

// release gives a claim's stock back.
func (s *shard) release(place dibs.Cursor, nowMS int64, hashOf func([]byte) uint64) (wait *batch, err error) {
	i, ok := s.h.seek(place)
	if !ok {
		return nil, dibs.ErrNotFound
	}
	r := s.h.at(i)
	if r.released {
		return cmp.Or(s.cur, s.inFlight), nil
	}
	if err := s.canAppend(); err != nil {
		return nil, err
	}
	items := s.h.items(i)
	s.cur.ops = append(s.cur.ops, op{kind: dibs.EntryRelease, records: s.h.n, record: i})
	s.append(&dibs.Entry{Kind: dibs.EntryRelease, At: nowMS, Target: place, Quantity: int64(r.quantity), Items: items})
	s.free = append(s.free, items...)
	s.setReleased(i, true, hashOf)
	return s.cur, nil
}

// setReleased marks record i and moves the counts with it.
func (s *shard) setReleased(i uint32, released bool, hashOf func([]byte) uint64) {
	r := s.h.at(i)
	user := s.h.userBytes(r.user)
	newest := s.h.at(s.h.find(hashOf(user), string(user)) - 1)
	r.released = released
	q := int64(r.quantity)
	if released {
		newest.held -= r.quantity
	} else {
		newest.held += r.quantity
		q = -q
	}
	s.granted -= q
	s.remaining.Add(q)
}

// adjust changes the stock.
// A restock must be of the shard's epoch: the load of a later epoch has counted it. A
// withdrawal need not: the engine alone decides it, and the ref makes it happen once.
func (s *shard) adjust(a *dibs.Adjustment, nowMS int64) (wait *batch, err error) {
	if _, made := s.refs[a.Ref]; made {
		return cmp.Or(s.cur, s.inFlight), nil
	}
	remaining := s.remaining.Load()
	if (a.Delta > 0 || a.Epoch > 0) && a.Epoch != s.epoch {
		return nil, wrongEpoch(a.Epoch, s.epoch)
	}
	if remaining+a.Delta < 0 {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Textf(
			"only %d are left to withdraw", "只剩 %d 可撤回", remaining))
	}
	// Restocks must arrive in the order in which the ledger numbered their items.
	if len(a.Items) > 0 && int(a.FirstItem) != len(s.values) {
		return nil, dibs.Unavail(dibs.EffectNone, dibs.ErrGap)
	}
	if err := s.canAppend(); err != nil {
		return nil, err
	}
	o := op{kind: dibs.EntryAdjust, records: s.h.n, delta: a.Delta, ref: a.Ref, values: len(a.Items)}
	if s.def.Load().hasItems && a.Delta < 0 {
		// Withdrawals take the items that would be granted last.
		keep := len(s.free) + int(a.Delta)
		o.items = append([]uint32(nil), s.free[keep:]...)
		s.free = s.free[:keep]
	}
	numbers := o.items
	for i := range a.Items {
		numbers = append(numbers, a.FirstItem+uint32(i))
	}
	s.values = append(s.values, a.Items...)
	if a.Delta > 0 {
		s.free = append(s.free, numbers...)
	}
	s.cur.ops = append(s.cur.ops, o)
	s.refs[a.Ref] = struct{}{}
	s.remaining.Add(a.Delta)
	s.append(&dibs.Entry{Kind: dibs.EntryAdjust, At: nowMS, Ref: a.Ref, Quantity: a.Delta, Items: numbers})
	return s.cur, nil
}

// wrongEpoch refuses a command that is not of the shard's epoch: the rebuild
// has counted an older one, and will count a newer one.
func wrongEpoch(command, open uint16) error {
	if command < open {
		return dibs.ErrStale
	}
	return errTooNew
}

// canAppend makes sure that there is a batch to write to, or says why not.
// Every error has the effect none, and the same call may be repeated, unless the
// epoch has no places left.
func (s *shard) canAppend() error {
	switch {
	case s.replaced:
		return errReplaced
	case s.frozen != nil:
		return s.frozen
	case s.seq == math.MaxUint32:
		return errSeqSpent
	case s.cur == nil:
		s.cur = &batch{done: make(chan struct{}), records: s.h.n, buf: s.spare}
		s.spare = nil
	case s.cur.entries >= maxBatch:
		return errQueueFull
	}
	return nil
}

// append gives the entry the next place and writes it to the batch.
// canAppend must have returned nil under the same lock.
func (s *shard) append(e *dibs.Entry) {
	s.seq++
	e.Cursor = dibs.Cursor{Epoch: s.epoch, Seq: s.seq}
	b := s.cur
	if b.entries == 0 {
		b.first, b.baseMS = s.seq, e.At
		b.buf = beginPayload(b.buf, e.At)
	}
	b.buf = appendEntry(b.buf, b.baseMS, e)
	b.entries++
	b.lastMS = e.At
}

// pending returns the batch that makes record index-1 durable; nil when it is.
func (s *shard) pending(index uint32) *batch {
	if index == 0 {
		return nil
	}
	r := s.h.at(index - 1)
	switch {
	case !s.durable.Before(dibs.Cursor{Epoch: r.epoch, Seq: r.seq}):
		return nil
	case s.cur != nil && s.cur.entries > 0 && r.seq >= s.cur.first:
		return s.cur
	default:
		return s.inFlight
	}
}
