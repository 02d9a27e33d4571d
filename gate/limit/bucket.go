package limit

import (
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

// bucket is one that all claims of a campaign or of the server share, or this
// node's share of it.
//
// It has no lock: claims move moment by compare-and-swap. spec, name and key never change;
// rule and share belong to newBucket and then to the loop of sharing.
type bucket struct {
	spec dibs.LimitSpec
	// name is what people call the limit, key what nodes know it by.
	name, key string
	// moment is when it will be as if never used.
	moment atomic.Int64
	rule   atomic.Pointer[rule]
	// asked counts claims, refused ones too: what this node's share is weighed by.
	asked atomic.Int64
	// share is this node's, in billionths.
	share atomic.Int64
	// usedAt is when a claim came last, to the second; of a campaign's by the
	// setting.
	usedAt atomic.Int64
}

// whole is all of a limit.
const whole = 1_000_000_000

// newBucket makes a bucket. Where nodes share, it begins with what this node may
// take without asking, empty of what others may have used.
func (l *Limiter) newBucket(spec dibs.LimitSpec, name, key string) *bucket {
	b := &bucket{spec: spec, name: name, key: key}
	share := int64(whole)
	if l.sharing != nil {
		share = l.sharing.firstShare()
	}
	b.set(share)
	if l.sharing != nil {
		l.sharing.add(b)
	}
	return b
}

// set gives the bucket a share without regard to what was in it.
func (b *bucket) set(share int64) {
	r := newRule(b.spec, b.name, float64(share)/whole)
	b.rule.Store(&r)
	b.share.Store(share)
}

// resize changes the share. The bucket keeps its content as far as it still fits; a
// share that grows brings nothing with it, so that all shares
// together never hold more than the whole.
func (b *bucket) resize(share, now int64) {
	if share == b.share.Load() {
		return
	}
	old := b.rule.Load()
	r := newRule(b.spec, b.name, float64(share)/whole)
	b.rule.Store(&r)
	b.share.Store(share)
	for {
		moment := b.moment.Load()
		ahead := max(moment-now, 0)
		var next int64
		if r.leaky {
			// Those who wait go on waiting for their turns; the rest comes behind them.
			next = moment
		} else {
			free := float64(old.slack-ahead)/float64(old.each) + 1
			room := float64(r.slack)/float64(r.each) + 1
			next = now + r.slack + r.each - int64(min(max(free, 0), room)*float64(r.each))
		}
		if b.moment.CompareAndSwap(moment, next) {
			return
		}
	}
}

// take lets a claim through, or does not.
func (b *bucket) take(now int64) (res dibs.Result, ok bool, wait int64) {
	b.asked.Add(1)
	r := b.rule.Load()
	for {
		moment := b.moment.Load()
		next, wait, ok := r.take(moment, now)
		if ok && !b.moment.CompareAndSwap(moment, next) {
			continue
		}
		res.Quota = r.quota(next, now)
		if !ok {
			refuse(&res, wait)
		}
		return res, ok, wait
	}
}
