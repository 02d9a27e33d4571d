package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// DefaultEntries is how many buckets are kept of users, of addresses, and of
// devices: so many of each kind, 16 bytes each.
const DefaultEntries = 1 << 20

// Config configures a Limiter; the zero value of any field means none, or the
// default named beside it.
type Config struct {
	// User, Address and Server bound the claims of each user, of each address and
	// of all, on all campaigns; Campaign those on each campaign. Their Per is not
	// looked at.
	User, Address, Server, Campaign *dibs.LimitSpec
	// Lists are who is blocked, and whom no limit holds for; SetLists changes them.
	Lists Lists
	// Holds reports whether a campaign is one that this node holds: only on such
	// ones the limit of campaigns is counted, whatever names users make up. It is
	// asked by all claims at once; default: any may be one.
	Holds func(campaignID string) bool
	// Entries is how many buckets of each kind are kept; default DefaultEntries.
	Entries int
	// Key hashes the names of users, addresses and devices: KeySize secret bytes,
	// the same on all nodes that share. Default: random, for a node alone.
	Key []byte
	// Redis returns where nodes share, as redisengine takes it; nil for a node alone. It is
	// asked ten times a second, must not wait, and may answer otherwise later: nodes that
	// find another one first share there from then on.
	Redis func() (url string)
	// Login returns the user and the password of Redis at each new connection; nil, also
	// as an answer, for those in the URL.
	Login func(url string) *url.Userinfo
	// Node tells this node from others; default: made up.
	Node string
	// Logger is told when nodes cannot share; default: nobody.
	Logger *slog.Logger
}

// Limiter is the limits of a node. It is a dibs.Gate for those of campaigns,
// and Enter is for those of the server. It is safe for concurrent use.
//
// Claims read user, address, lists, campaigns and defaults without a lock. making guards key,
// forgotAt and defaultCount, and is held by everyone who changes campaigns or defaults. A rule
// or a gate that is there does not change, but for a gate's usedAt: another takes its place.
type Limiter struct {
	cfg   Config
	log   *slog.Logger
	begin time.Time
	// key makes the rules; see SetKey.
	key hashKey
	// tables are apart, so that names that cost nothing, as those of devices, push
	// nobody out whose name was checked.
	tables  [kinds]*table
	user    atomic.Pointer[rule]
	address atomic.Pointer[rule]
	server  *bucket
	lists   atomic.Pointer[lookups]
	// campaigns are the limits of campaigns, by their number; defaults are the
	// buckets that the setting gives them, by their id, counted in defaultCount.
	campaigns    sync.Map // uint32 -> *gate
	defaults     sync.Map // string -> *bucket
	defaultCount int
	// fullUntil is until when there are surely maxDefaults of them.
	fullUntil atomic.Int64
	// making has what two claims meet at once made once.
	making   sync.Mutex
	forgotAt int64
	sharing  *sharing
	seen     seen
}

var _ dibs.Gate = (*Limiter)(nil)

// campaignLimits is the limits of one campaign, as one version of it has them; those per
// campaign come last, so that whom another one refuses takes nothing from them.
type campaignLimits struct {
	spec  *dibs.GateSpec
	rules []rule
	// buckets are those of limits per campaign; nil for the others.
	buckets []*bucket
	usedAt  atomic.Int64
}

// New returns a limiter. Close it.
func New(cfg Config) (*Limiter, error) {
	cfg.Entries = cmp.Or(cfg.Entries, DefaultEntries)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Redis != nil && cfg.Key == nil {
		return nil, errors.New("limit: Config.Key is required with Config.Redis: nodes that share need the same one")
	}
	key, err := newHashKey(cfg.Key)
	if err != nil {
		return nil, err
	}
	l := &Limiter{cfg: cfg, log: cfg.Logger, begin: time.Now(), key: key}
	for i := range l.tables {
		l.tables[i] = newTable(cfg.Entries)
	}
	for _, of := range []struct {
		field string
		spec  *dibs.LimitSpec
	}{{"/User", cfg.User}, {"/Address", cfg.Address}, {"/Server", cfg.Server}, {"/Campaign", cfg.Campaign}} {
		if of.spec == nil {
			continue
		}
		if fs := of.spec.Faults(of.field); len(fs) > 0 {
			return nil, fmt.Errorf("limit: %w", dibs.Invalid(fs...))
		}
	}
	l.SetLists(cfg.Lists)
	if cfg.Redis != nil {
		if l.sharing, err = newSharing(l); err != nil {
			return nil, err
		}
	}
	l.makeRules()
	if cfg.Server != nil {
		l.server = l.newBucket(*cfg.Server, "server", "server")
	}
	if l.sharing != nil {
		// Before the first claim, the share of the server's limit is known.
		l.sharing.start()
	}
	return l, nil
}

// Close stops sharing.
func (l *Limiter) Close() {
	if l.sharing != nil {
		l.sharing.close()
	}
}

// now is the time since the limiter was made, which no clock that is set can
// change.
func (l *Limiter) now() int64 { return int64(time.Since(l.begin)) + 1 }

// Enter holds a claim against the limits of the server, before anything is
// asked of a campaign. It may wait for its turn. The result is a refusal when ok
// is false; else its Quota is the user's, if there is such a limit.
func (l *Limiter) Enter(ctx context.Context, req *dibs.ClaimRequest) (res dibs.Result, ok bool) {
	if res, ok = l.enter(ctx, req); !ok {
		l.seen.refuse(&res)
	}
	return res, ok
}

func (l *Limiter) enter(ctx context.Context, req *dibs.ClaimRequest) (res dibs.Result, ok bool) {
	if l.lists.Load().blocks(req.Address, req.Device) {
		return dibs.Result{Outcome: dibs.Forbidden, Detail: blocked}, false
	}
	now := l.now()
	var wait int64
	if user := l.user.Load(); user != nil {
		if res, ok, wait = l.keyed(user, req.UserID, now); !ok {
			return res, false
		}
	}
	if address := l.address.Load(); address != nil && l.counts(req.Address) {
		no, ok, w := l.keyed(address, addressKey(req.Address), now)
		if !ok {
			return no, false
		}
		wait = max(wait, w)
	}
	if l.cfg.Campaign != nil && (l.cfg.Holds == nil || l.cfg.Holds(req.CampaignID)) {
		no, ok, w := l.defaultBucket(req.CampaignID, now).take(now)
		if !ok {
			return no, false
		}
		wait = max(wait, w)
	}
	if l.server != nil {
		no, ok, w := l.server.take(now)
		if !ok {
			return no, false
		}
		wait = max(wait, w)
	}
	return l.turn(ctx, res, wait)
}

// Pass implements dibs.Gate for the limits of a campaign.
func (l *Limiter) Pass(ctx context.Context, c *dibs.Campaign, req *dibs.ClaimRequest) (dibs.Result, bool) {
	if len(c.Gate.Limits) == 0 {
		return dibs.Result{}, true
	}
	res, ok := l.pass(ctx, c, req)
	if !ok {
		l.seen.refuse(&res)
	}
	return res, ok
}

func (l *Limiter) pass(ctx context.Context, c *dibs.Campaign, req *dibs.ClaimRequest) (dibs.Result, bool) {
	g, now := l.gateOf(c), l.now()
	if g.usedAt.Load()+int64(time.Second) < now {
		g.usedAt.Store(now)
	}
	var wait int64
	for i := range g.rules {
		r := &g.rules[i]
		var no dibs.Result
		var w int64
		ok := true
		switch r.spec.Per {
		case "user":
			no, ok, w = l.keyed(r, req.UserID, now)
		case "address":
			if l.counts(req.Address) {
				no, ok, w = l.keyed(r, addressKey(req.Address), now)
			}
		case "device":
			// Users who name no device share one.
			if !l.lists.Load().spares(req.Device) {
				no, ok, w = l.keyed(r, req.Device, now)
			}
		default:
			no, ok, w = g.buckets[i].take(now)
		}
		if !ok {
			return no, false
		}
		wait = max(wait, w)
	}
	return l.turn(ctx, dibs.Result{}, wait)
}

var blocked = dibs.Text{EN: "claims from this address or device are blocked", ZH: "当前地址或设备不允许领取"}

// counts reports whether limits per address hold for an address.
func (l *Limiter) counts(at netip.Addr) bool {
	return at.IsValid() && !l.lists.Load().allowed.has(at)
}

// gateOf returns a campaign's limits, made anew when they have changed.
func (l *Limiter) gateOf(c *dibs.Campaign) *campaignLimits {
	if v, ok := l.campaigns.Load(c.Number); ok && v.(*campaignLimits).spec == c.Gate {
		return v.(*campaignLimits)
	}
	l.making.Lock()
	defer l.making.Unlock()
	var old *campaignLimits
	if v, ok := l.campaigns.Load(c.Number); ok {
		if old = v.(*campaignLimits); old.spec == c.Gate {
			return old
		}
	}
	next := l.newGate(c, old)
	l.campaigns.Store(c.Number, next)
	if old != nil && l.sharing != nil {
		l.sharing.drop(slices.DeleteFunc(slices.Clone(old.buckets), func(b *bucket) bool { return slices.Contains(next.buckets, b) }))
	}
	// Only here they become more.
	l.forget(next.usedAt.Load())
	return next
}

// newGate makes a campaign's limits; a limit that is among the old ones keeps
// its bucket. The same limit twice is one limit.
func (l *Limiter) newGate(c *dibs.Campaign, old *campaignLimits) *campaignLimits {
	next := &campaignLimits{spec: c.Gate}
	next.usedAt.Store(l.now())
	for _, last := range []bool{false, true} {
		for _, spec := range c.Gate.Limits {
			r := l.keyedRule(spec, spec.Per, c.Number)
			if last != (spec.Per == "campaign") || next.at(r.id) >= 0 {
				continue
			}
			var b *bucket
			if i := old.at(r.id); last && i >= 0 {
				b = old.buckets[i]
			} else if last {
				b = l.newBucket(spec, r.name, fmt.Sprintf("c%d.%016x", c.Number, shareID(r.id)))
			}
			next.rules, next.buckets = append(next.rules, r), append(next.buckets, b)
		}
	}
	return next
}

// at is where a limit is in a gate, which may be nil; -1 when it is not.
func (g *campaignLimits) at(id string) int {
	if g == nil {
		return -1
	}
	return slices.IndexFunc(g.rules, func(r rule) bool { return r.id == id })
}

// maxDefaults bounds the campaigns that the setting for campaigns is counted
// of, one by one; those beyond it share a bucket.
const maxDefaults = 4096

// othersKey is the name of the bucket that campaigns beyond maxDefaults share;
// no campaign can have it.
const othersKey = "*"

// defaultBucket is the bucket that the setting gives a campaign.
func (l *Limiter) defaultBucket(id string, now int64) *bucket {
	v, ok := l.defaults.Load(id)
	if !ok && now < l.fullUntil.Load() {
		v, ok = l.defaults.Load(othersKey)
	}
	if !ok {
		v = l.newDefault(id, now)
	}
	b := v.(*bucket)
	if b.usedAt.Load()+int64(time.Second) < now {
		b.usedAt.Store(now)
	}
	return b
}

// newDefault makes the bucket of a campaign that has none yet.
func (l *Limiter) newDefault(id string, now int64) *bucket {
	l.making.Lock()
	defer l.making.Unlock()
	// Only here they become more.
	l.forget(now)
	if l.defaultCount >= maxDefaults {
		id = othersKey
		// None goes before the next look: so long no claim has to wait here.
		l.fullUntil.Store(l.forgotAt + forgetEvery)
	}
	if v, ok := l.defaults.Load(id); ok {
		return v.(*bucket)
	}
	b := l.newBucket(*l.cfg.Campaign, "campaign", "campaign."+id)
	b.usedAt.Store(now)
	l.defaults.Store(id, b)
	l.defaultCount++
	return b
}

// keyed takes from a bucket in the table.
func (l *Limiter) keyed(r *rule, who string, now int64) (res dibs.Result, ok bool, wait int64) {
	key := r.key.of(who)
	moment := int64(0)
	l.tables[r.kind].with(key, func(m int64) int64 {
		moment, wait, ok = r.take(m, now)
		return moment
	})
	if ok && l.sharing != nil {
		l.sharing.used(r, key, moment-now)
	}
	res.Quota = r.quota(moment, now)
	if !ok {
		refuse(&res, wait)
	}
	return res, ok, wait
}

// refuse fills in a refusal.
func refuse(res *dibs.Result, wait int64) {
	res.Outcome, res.RetryAfter = dibs.RateLimited, time.Duration(wait)
	res.Detail = details[res.Quota.Name]
}

// details say which limit refused.
var details = map[string]dibs.Text{
	"user":              {EN: "you ask too often", ZH: "您的请求过于频繁"},
	"address":           {EN: "too many requests come from your address", ZH: "您所在地址的请求过多"},
	"server":            {EN: "more people ask than can be answered now", ZH: "当前请求人数过多"},
	"campaign":          {EN: "more people ask for this than can be answered now", ZH: "该活动当前请求人数过多"},
	"campaign.campaign": {EN: "more people ask for this than can be answered now", ZH: "该活动当前请求人数过多"},
	"campaign.user":     {EN: "you ask for this too often", ZH: "您对该活动的请求过于频繁"},
	"campaign.address":  {EN: "too many requests for this come from your address", ZH: "您所在地址对该活动的请求过多"},
	"campaign.device":   {EN: "too many requests for this come from your device", ZH: "您的设备对该活动的请求过多"},
}

// addressKey is what of an address counts: of IPv6 the network of a household.
func addressKey(at netip.Addr) string {
	if at.Is4() {
		b := at.As4()
		return string(b[:])
	}
	b := at.As16()
	return string(b[:8])
}

// turn lets a claim through when its turn has come. A claim whose caller stops waiting
// is refused, whether or not the caller is told.
func (l *Limiter) turn(ctx context.Context, res dibs.Result, wait int64) (dibs.Result, bool) {
	if wait <= 0 {
		return res, true
	}
	l.seen.waited.Add(1)
	t := time.NewTimer(time.Duration(wait))
	defer t.Stop()
	select {
	case <-t.C:
		return res, true
	case <-ctx.Done():
		refuse(&res, wait)
		return res, false
	}
}

const (
	// forgetAfter is how long the limits of a campaign are kept at least that nobody
	// claims from, forgetEvery how often such are looked for.
	forgetAfter = int64(10 * time.Minute)
	forgetEvery = int64(time.Minute)
)

// forget lets go of the limits of campaigns that nobody has claimed from for a
// while, and that are as if never used. The caller holds making.
func (l *Limiter) forget(now int64) {
	if now-l.forgotAt < forgetEvery {
		return
	}
	l.forgotAt = now
	l.campaigns.Range(func(number, v any) bool {
		g := v.(*campaignLimits)
		used := slices.ContainsFunc(g.buckets, func(b *bucket) bool { return b != nil && b.moment.Load() > now })
		if used || now-g.usedAt.Load() <= forgetAfter {
			return true
		}
		l.campaigns.Delete(number)
		if l.sharing != nil {
			l.sharing.drop(g.buckets)
		}
		return true
	})
	l.defaults.Range(func(id, v any) bool {
		b := v.(*bucket)
		if b.moment.Load() > now || now-b.usedAt.Load() <= forgetAfter {
			return true
		}
		l.defaults.Delete(id)
		l.defaultCount--
		if l.sharing != nil {
			l.sharing.drop([]*bucket{b})
		}
		return true
	})
}
