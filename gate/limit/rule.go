package limit

import (
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
)

// rule is a limit in the numbers that decide; times are nanoseconds.
type rule struct {
	spec dibs.LimitSpec
	// name is what headers and people call it.
	name  string
	leaky bool
	// each is what one claim is worth.
	each int64
	// slack is how far ahead of now a bucket's moment may be for a claim to be let
	// through: the burst but for the claim itself, or the longest wait.
	slack int64
	// id is all that makes it another rule than the others, and kind and key are
	// where the buckets of its names are; empty for a bucket that is a share.
	id   string
	kind kind
	key  hashKey
}

// kind is who a rule counts by name.
type kind uint8

// The kinds of names: users are who their tokens say, addresses are hard to come
// by, and devices are made up at will.
const (
	users kind = iota
	addresses
	devices
	kinds
)

// kindOf has the kind of each LimitSpec.Per that counts names; users are the rest.
var kindOf = map[string]kind{"address": addresses, "device": devices}

// keyedRule is newRule for all of a limit that counts names: of a campaign's
// number, or of 0 for one of the server, and of the limit as it is. So one that
// stays as it was keeps its count on every node whatever else changes, and one that
// changes begins anew, without what its users owed the one before.
func (l *Limiter) keyedRule(spec dibs.LimitSpec, per string, campaign uint32) rule {
	name := per
	if campaign != 0 {
		name = "campaign." + per
	}
	r := newRule(spec, name, 1)
	s := &r.spec
	r.id = fmt.Sprintf("%s %d %s %d %d %d %d", name, campaign, s.Bucket, s.Rate, s.Every, s.Burst, s.MaxWait)
	r.kind, r.key = kindOf[per], l.key.derive(r.id)
	return r
}

// newRule turns a limit that has no faults into numbers, of a share of it.
func newRule(spec dibs.LimitSpec, name string, share float64) rule {
	spec = spec.WithDefaults()
	r := rule{spec: spec, name: name, leaky: spec.Bucket == dibs.LimitLeaky}
	every := float64(spec.Every)
	r.each = max(1, int64(min(every/float64(spec.Rate)/max(share, minShare), longest)))
	// A node has room for one claim at least, or its share would be worth nothing.
	burst := max(1, float64(spec.Burst)*share)
	r.slack = int64(min((burst-1)*float64(r.each), longest))
	if r.leaky {
		r.slack = int64(min(burst*float64(r.each), float64(spec.MaxWait)))
	}
	return r
}

const (
	// minShare keeps a rate above nothing.
	minShare = 1e-6
	// longest keeps sums of times within their type.
	longest = 1 << 60
)

// take lets a claim through at now, or does not. moment is the bucket's, next
// what it becomes; wait is how long the claim has to wait for its turn, or, when
// it is refused, after what time another one would be let through.
func (r *rule) take(moment, now int64) (next, wait int64, ok bool) {
	ahead := max(moment-now, 0)
	if ahead > r.slack {
		return moment, ahead - r.slack, false
	}
	if r.leaky {
		wait = ahead
	}
	return now + ahead + r.each, wait, true
}

// left is how many more claims would be let through at now.
func (r *rule) left(moment, now int64) int64 {
	ahead := max(moment-now, 0)
	if ahead > r.slack {
		return 0
	}
	return (r.slack-ahead)/r.each + 1
}

// quota is what headers say of a bucket.
func (r *rule) quota(moment, now int64) dibs.Quota {
	return dibs.Quota{
		Name: r.name, Limit: r.spec.Rate, Window: time.Duration(r.spec.Every),
		Remaining: r.left(moment, now), Reset: time.Duration(max(moment-now, 0)),
	}
}
