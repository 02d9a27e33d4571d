package redisengine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
)

// batch is the claims that one call decides.
type batch struct {
	lane    *lane
	tickets []*ticket
	// aboard is how many of them the lane counts as under way.
	aboard int
	// bufs hold what encode wrote.
	bufs  [4][]byte
	token string
	// after is the highest place that was seen when the batch was sent, and
	// deadlineMS the time of Redis' clock after which it is not decided any more.
	after      dibs.Cursor
	deadlineMS int64
}

// encodable refuses what the domain never lets through.
func encodable(req *dibs.EngineClaim) error {
	if !holdable(req.UserID, req.Quantity) {
		return dibs.Invalid(dibs.Fault{Field: "/quantity", Problem: dibs.Textf(
			"must be from 1 to %d, for a user of 1 to %d bytes", "必须在 1 到 %d 之间，用户 ID 为 1 到 %d 字节", int64(math.MaxUint32), maxUserLen)})
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// hashOf spreads users over the buckets of a shard. The bytes are the string's
// own: a copy would be one more thing to collect for each claim.
func hashOf(user string) uint32 {
	return crc32.Checksum(unsafe.Slice(unsafe.StringData(user), len(user)), castagnoli)
}

// bucketOf is the number of a user's bucket, from 1.
func bucketOf(user string, buckets int64) uint32 { return uint32(int64(hashOf(user))%buckets) + 1 }

// lateMark is LATE of lua/claim.lua: what is added to the quantity of a claim
// that is decided whatever the window and the state are.
const lateMark = 1 << 40

// encode writes the claims as msgpack arrays: their buckets, how their records
// begin, their quantities, which are left out when all are plain claims of one
// unit, and which of them share a bucket with an earlier one, left out when none
// does. The script would need a table of all buckets to see that for itself.
func (b *batch) encode(buckets int64) []string {
	for i := range b.bufs {
		b.bufs[i] = appendArray(b.bufs[i][:0], len(b.tickets))
	}
	fields, begins, quantities, sharing := b.bufs[0], b.bufs[1], b.bufs[2], b.bufs[3]
	seats := seatings.Get().(*seating)
	defer seatings.Put(seats)
	seats.begin()
	plain, shared := true, 0
	for i, t := range b.tickets {
		bucket := bucketOf(t.req.UserID, buckets)
		fields = binary.BigEndian.AppendUint32(append(fields, 0xa0|4), bucket)
		if first := seats.first(bucket, uint16(i+1)); first > 0 {
			shared++
			sharing = appendUint16(appendUint16(sharing, uint16(i+1)), first)
		}
		begins = appendBegin(begins, t.req.UserID, t.req.Key)
		quantity := markedQuantity(&t.req)
		quantities = binary.BigEndian.AppendUint64(append(quantities, 0xd3), uint64(quantity))
		plain = plain && quantity == 1
	}
	binary.BigEndian.PutUint16(sharing[1:], uint16(2*shared))
	b.bufs = [4][]byte{fields, begins, quantities, sharing}
	args := []string{rueidis.BinaryString(fields), rueidis.BinaryString(begins), "", ""}
	if !plain {
		args[2] = rueidis.BinaryString(quantities)
	}
	if shared > 0 {
		args[3] = rueidis.BinaryString(sharing)
	}
	return args
}

// markedQuantity is a claim's quantity with what the script has to know of it.
func markedQuantity(req *dibs.EngineClaim) int64 {
	quantity := req.Quantity
	if req.Late {
		quantity += lateMark
	}
	if req.OnlyRepeat {
		quantity = -quantity
	}
	return quantity
}

// send has the batch decided and answers its tickets.
func (b *batch) send() {
	l := b.lane
	if err := l.meet(); err != nil {
		b.fail(err)
		return
	}
	l.known.Lock()
	b.after, b.deadlineMS = l.seen, l.e.localMS()+l.ahead+l.e.cfg.Deadline.Milliseconds()
	buckets := max(l.buckets, 1)
	l.known.Unlock()
	b.token = l.e.token()
	ctx, cancel := context.WithTimeout(context.Background(), l.e.cfg.Deadline+grace)
	defer cancel()
	k := &l.keys
	args := append([]string{strconv.FormatInt(b.deadlineMS, 10), b.token, itoa(buckets)}, b.encode(buckets)...)
	began := time.Now()
	res, err := l.run(ctx, claimScript, []string{k.meta, k.holdings, k.places, k.journal, k.free, k.issued, k.state}, args...)
	l.e.work.Durable.Since(began)
	switch {
	case err != nil && willPass(err):
		<-time.After(passingPause)
		b.retry(b.tickets, dibs.Unavail(dibs.EffectNone, err))
	case err != nil && changedNothing(err):
		b.fail(dibs.Unavail(dibs.EffectNone, err))
	case err != nil:
		// The driver may hold on to the arguments still.
		b.bufs = [4][]byte{}
		b.resolve(err)
	case res.word == "late":
		// Nothing was decided, and the answer has corrected the idea of Redis' clock.
		b.retry(b.tickets, dibs.Unavail(dibs.EffectNone, errLate))
	case res.word == "respread" && len(res.rest) > 0:
		// Nothing was decided: the shard was opened again, with other buckets.
		l.respread(res.rest[0].number)
		b.retry(b.tickets, dibs.Unavail(dibs.EffectNone, errLate))
	case res.word != "ok":
		b.fail(refusal(&res))
	default:
		b.deliver(&res)
	}
}

// passingPause is how long a flight rests before it asks a server again that
// could not decide at that moment.
const passingPause = 10 * time.Millisecond

var errLate = errors.New("redisengine: the claim came too late to be decided")

// meet hears from Redis for the first time: its clock, and the shard's place.
func (l *lane) meet() error {
	l.known.Lock()
	met := l.met
	l.known.Unlock()
	if met {
		return nil
	}
	err := l.insist(func(ctx context.Context) error {
		res, err := l.run(ctx, statsScript, []string{l.keys.meta})
		if err == nil && res.word == "ok" && len(res.rest) > 3 {
			l.respread(res.rest[3].number)
		}
		return err
	})
	if err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	l.known.Lock()
	l.met = true
	l.known.Unlock()
	return nil
}

// fail answers every ticket with an error.
func (b *batch) fail(err error) {
	b.lane.land(b)
	for _, t := range b.tickets {
		t.fail(err)
	}
}

// retry sends claims again that had no effect, or fails them when their
// patience is over.
func (b *batch) retry(back []*ticket, tooLong error) {
	b.lane.land(b)
	young := make([]*ticket, 0, len(back))
	for _, t := range back {
		if time.Since(t.born) < b.lane.e.cfg.Patience {
			young = append(young, t)
		} else {
			t.fail(tooLong)
		}
	}
	b.lane.again(young)
}

// outcomes are what the letters of an answer stand for.
var outcomes = [256]struct {
	reason dibs.Reason
	known  bool
}{
	'G': {dibs.Granted, true}, 'R': {dibs.Granted, true}, 'K': {dibs.KeyReused, true}, 'O': {dibs.Overloaded, true},
	'P': {dibs.Paused, true}, 'E': {dibs.Ended, true}, 'N': {dibs.NotStarted, true}, 'S': {dibs.SoldOut, true},
	'L': {dibs.LimitReached, true}, 'M': {dibs.TooManyClaims, true},
}

// answers is what a claim script answered: what holds for all claims of the call,
// a letter for each, and the details of those that have one, in order. It does not
// change: the callers read it side by side.
type answers struct {
	shard   dibs.ShardID
	letters string
	details []reply
	atMS    int64
	payInMS int64
	items   bool
	// before is the place that the shard had reached before the call.
	before dibs.Cursor
}

// told is a claim's own part of its call's answers: the caller makes the decision
// of it, so that who delivers a thousand of them has little to do for each.
type told struct {
	by     *answers
	at     dibs.Cursor
	detail string
	letter byte
}

// deliver answers the tickets with what the script decided.
func (b *batch) deliver(res *result) {
	a, err := answersOf(b.lane.id, res)
	if err == nil && len(a.letters) != len(b.tickets) {
		err = errShape
	}
	if err != nil {
		b.fail(dibs.Unavail(dibs.EffectUnknown, err))
		return
	}
	// Before anyone is answered: what a caller was told, every later call has seen.
	if granted := strings.Count(a.letters, "G"); granted > 0 {
		reached := a.before
		reached.Seq += uint32(granted)
		// These users hold something now, which what is refused here may not know.
		b.lane.lift()
		b.lane.advance(reached)
		b.lane.e.signal()
	}
	if strings.ContainsAny(a.letters, "PENS") {
		b.lane.follow()
	}
	b.lane.land(b)
	at, details := a.before, a.details
	for i, t := range b.tickets {
		letter, detail := a.letters[i], ""
		if letter == 'G' {
			at.Seq++
		}
		if a.detailed(letter) {
			if len(details) == 0 {
				t.fail(dibs.Unavail(dibs.EffectUnknown, errShape))
				continue
			}
			detail, details = details[0].text, details[1:]
		}
		t.answer(told{a, at, detail, letter})
	}
}

func answersOf(id dibs.ShardID, res *result) (*answers, error) {
	if len(res.rest) < 4 {
		return nil, errShape
	}
	return &answers{
		shard: id, atMS: res.rest[0].number, payInMS: res.rest[1].number, items: res.rest[2].number == 1,
		letters: res.rest[3].text, details: res.rest[4:], before: res.at,
	}, nil
}

// detailed reports whether a letter comes with a detail.
func (a *answers) detailed(letter byte) bool {
	return letter == 'R' || letter == 'S' || letter == 'L' || letter == 'G' && a.items
}

// decision is what a claim was told.
func (t *told) decision(req *dibs.EngineClaim) (d dibs.Decision, err error) {
	a, outcome := t.by, outcomes[t.letter]
	if !outcome.known {
		return d, dibs.Unavail(dibs.EffectNone, fmt.Errorf("redisengine: the epoch of shard %s has no places left", a.shard))
	}
	d.Outcome = outcome.reason
	switch t.letter {
	case 'G':
		d.Grant = dibs.Grant{Position: dibs.Position{ShardID: a.shard, Cursor: t.at}, UserID: req.UserID, Quantity: req.Quantity, At: a.atMS}
		if a.payInMS > 0 {
			d.Grant.PayBy = a.atMS + a.payInMS
		}
		if a.items {
			d.Grant.Items, err = itemValues(t.detail)
		}
	case 'R':
		d.Replayed = true
		d.Grant, err = grantOf(a.shard, req.UserID, t.detail, a.payInMS)
	case 'S':
		d.Remaining, err = strconv.ParseInt(t.detail, 10, 64)
	case 'L':
		d.Held, err = heldOf(a.shard, t.detail)
	}
	if err != nil {
		return dibs.Decision{}, dibs.Unavail(dibs.EffectUnknown, err)
	}
	return d, nil
}
