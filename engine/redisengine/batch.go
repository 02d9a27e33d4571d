package redisengine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// batch is the claims that one call decides.
type batch struct {
	lane    *lane
	waiters []*waiter
	// underWay is how many of them the lane counts as under way.
	underWay int
	// bufs hold what encode wrote.
	bufs  [5][]byte
	token string
	// after is the highest place that was seen when the batch was sent, and
	// deadlineMS the time of Redis' clock after which it is not decided any more.
	after      dibs.Cursor
	deadlineMS int64
}

// send has the batch decided and answers its waiters.
func (b *batch) send() {
	l := b.lane
	if err := l.meet(); err != nil {
		b.fail(err)
		return
	}
	l.known.Lock()
	b.after, b.deadlineMS = l.seen, l.p.localMS()+l.ahead+l.p.cfg.Deadline.Milliseconds()
	buckets, shards := max(l.buckets, 1), l.shards
	l.known.Unlock()
	if !b.cameBy(shards) {
		// It was not known when they were taken.
		b.retry(b.waiters, dibs.Unavail(dibs.EffectNone, conn.ErrLate))
		return
	}
	b.token = l.p.token()
	ctx, cancel := context.WithTimeout(context.Background(), l.p.cfg.Deadline+grace)
	defer cancel()
	k := &l.keys
	args := append([]string{strconv.FormatInt(b.deadlineMS, 10), b.token, format.Itoa(buckets)}, b.encode(buckets)...)
	args = append(args, format.Itoa(max(shards, 0)))
	began := time.Now()
	keys := append([]string{k.Meta, k.Holdings, k.Places, k.Journal, k.Free, k.Issued, k.State}, k.OfProduct()...)
	res, err := l.run(ctx, conn.ClaimScript, keys, args...)
	l.p.stats.Durable.Since(began)
	switch {
	case err != nil && conn.WillPass(err):
		<-time.After(passingPause)
		b.retry(b.waiters, dibs.Unavail(dibs.EffectNone, err))
	case err != nil && conn.ChangedNothing(err):
		b.fail(dibs.Unavail(dibs.EffectNone, err))
	case err != nil:
		// The driver may hold on to the arguments still.
		b.bufs = [5][]byte{}
		b.resolve(err)
	case res.Word == "late":
		// Nothing was decided, and the answer has corrected the idea of Redis' clock.
		b.retry(b.waiters, dibs.Unavail(dibs.EffectNone, conn.ErrLate))
	case res.Word == "respread" && len(res.Rest) > 1:
		// Nothing was decided: the shard was opened again, with other buckets, or the
		// campaign has more shards.
		l.respread(res.Rest[0].Number, res.Rest[1].Number)
		b.retry(b.waiters, dibs.Unavail(dibs.EffectNone, conn.ErrLate))
	case res.Word != "ok":
		b.fail(conn.Refusal(&res))
	default:
		b.deliver(&res)
	}
}

// cameBy reports whether all claims were sent here by a number of shards, where it is
// known.
func (b *batch) cameBy(shards int64) bool {
	return !slices.ContainsFunc(b.waiters, func(t *waiter) bool { return strays(&t.req, shards) })
}

// strays reports whether a claim came to a shard by another number of shards than the
// shard's, as far as both are known. A shard that a version before opened may still take
// in users by the number before: it does not say that it does not know one.
func strays(req *dibs.EngineClaim, shards int64) bool {
	if shards == unwritten {
		return req.OnlyKnown
	}
	return shards != 0 && req.Shards != 0 && int64(req.Shards) != shards
}

// passingPause is how long a call waits before it asks a server again that
// could not decide at that moment.
const passingPause = 10 * time.Millisecond

// fail answers every waiter with an error.
func (b *batch) fail(err error) {
	b.lane.done(b)
	for _, t := range b.waiters {
		t.fail(err)
	}
}

// retry sends claims again that had no effect, or fails them when their
// patience is over.
func (b *batch) retry(back []*waiter, tooLong error) {
	b.lane.done(b)
	young := make([]*waiter, 0, len(back))
	for _, t := range back {
		if time.Since(t.born) < b.lane.p.cfg.Patience {
			young = append(young, t)
		} else {
			t.fail(tooLong)
		}
	}
	b.lane.again(young)
}

// deliver answers the waiters with what the script decided.
func (b *batch) deliver(res *conn.Result) {
	a, err := answersOf(b.lane.id, res)
	if err == nil && len(a.letters) != len(b.waiters) {
		err = conn.ErrShape
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
		b.lane.follower.lift()
		b.lane.advance(reached)
		b.lane.p.signal()
	}
	if strings.ContainsAny(a.letters, "PENS") {
		b.lane.follower.follow()
	}
	b.lane.done(b)
	at, details := a.before, a.details
	for i, t := range b.waiters {
		letter, detail := a.letters[i], ""
		if letter == 'G' {
			at.Seq++
		}
		if a.detailed(letter) {
			if len(details) == 0 {
				t.fail(dibs.Unavail(dibs.EffectUnknown, conn.ErrShape))
				continue
			}
			detail, details = details[0].Text, details[1:]
		}
		t.answer(told{a, at, detail, letter})
	}
}
