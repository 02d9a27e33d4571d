package claims

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/histogram"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/moving"
)

// Ledger finds claims that were settled.
type Ledger interface {
	// Totals returns a shard's sums. ErrNotFound.
	Totals(ctx context.Context, shard dibs.ShardID) (live.ShardTotals, error)
	// Claim returns one by position. ErrNotFound.
	Claim(ctx context.Context, p dibs.Position) (*dibs.Claim, error)
	// ClaimByKey returns a user's claim by the hash of its request key.
	// ErrNotFound.
	ClaimByKey(ctx context.Context, campaign uint32, user string, key uint64) (*dibs.Claim, error)
	// ClaimList lists newest first when UserID is set, else in the order of
	// positions.
	ClaimList(ctx context.Context, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error)
	// References returns the references of those of some claims that have one.
	References(ctx context.Context, at []dibs.Position) (map[dibs.Position]string, error)
}

// Claims takes claims to the engine, and finds them again.
type Claims struct {
	registry *live.Registry
	lookups  *live.Lookups
	settler  *live.Settler
	loader   *live.Loader
	aside    *live.Quarantine
	engine   dibs.Engine
	ledger   Ledger
	moving   *moving.Mover
	ids      dibs.ClaimIDs
	ledgered bool
	gates    []dibs.Gate
	guard    Guard
	revoked  func(user, id string, issued time.Time) bool

	granted, replayed atomic.Int64
	// gateTimes are what stands before the engine; engineTimes are from there to an
	// answer that lasts, of grants, since most refusals are made from memory;
	// ledgerTimes what grants wait for at the level ledgered, all of them.
	gateTimes, engineTimes, ledgerTimes *histogram.Histogram
}

// Config is what Claims is made of; Gates and Guard may be absent.
type Config struct {
	Live   *live.Node
	Engine dibs.Engine
	Ledger Ledger
	// Moving brings units to shards that have none left; see dryShard.
	Moving *moving.Mover
	IDs    dibs.ClaimIDs
	// Ledgered makes a yes wait until the ledger has it.
	Ledgered bool
	// Gates are asked, in order, before a claim on a campaign with a gate reaches the engine.
	Gates []dibs.Gate
	// Guard bounds the claims that the engine decides at a time.
	Guard Guard
	// Revoked reports whether a user's token was revoked, by its id and when it was issued; nil for never. Only claims
	// that have waited are asked about.
	Revoked func(user, id string, issued time.Time) bool
}

// New returns Claims on a node's campaigns.
func New(c Config) *Claims {
	return &Claims{
		registry: c.Live.Registry, lookups: c.Live.Lookups, settler: c.Live.Settler, loader: c.Live.Loader, aside: c.Live.Quarantine,
		engine: c.Engine, ledger: c.Ledger, moving: c.Moving, ids: c.IDs, ledgered: c.Ledgered, gates: c.Gates, guard: c.Guard, revoked: c.Revoked,
		gateTimes: histogram.NewTimeHistogram(), engineTimes: histogram.NewTimeHistogram(), ledgerTimes: histogram.NewTimeHistogram(),
	}
}

// Claim decides a claim request. A refusal is a Result, not an error; errors
// are *Error of InvalidRequest, Unauthenticated (the token ended in a queue),
// Unavailable or Overloaded; the last two have an Effect. When the answer is
// Granted, the claim is durable at the engine's level.
func (s *Claims) Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error) {
	if req.Quantity == 0 {
		req.Quantity = 1
	}
	if fs := req.Faults(); fs != nil {
		s.registry.Elsewhere[dibs.InvalidRequest].Add(1)
		return dibs.Result{}, dibs.Invalid(fs...)
	}
	l := s.registry.Live(req.CampaignID)
	if l == nil {
		// A copy, here and below: a request whose pointer escapes is put on the heap,
		// and most claims take neither way.
		slow := req
		return s.notLive(ctx, &slow)
	}
	full := l.IsFull()
	if full && req.Key == "" {
		l.Refuse(dibs.Overloaded)
		return dibs.Result{}, backlogFull
	}
	c := l.Def()
	if c.Gate == nil {
		r, err := s.ask(ctx, l, c, &req, full, nil)
		if dry, is := dryOf(err); is {
			again := req
			return s.dryShard(ctx, l, c, &again, dry)
		}
		return r, err
	}
	gated := req
	no, refused := s.refuse(ctx, c, &gated)
	if !refused && s.TokenEnded(&gated) {
		l.Refuse(dibs.Unauthenticated)
		return dibs.Result{}, ErrTokenEnded
	}
	if !refused {
		r, err := s.ask(ctx, l, c, &req, full, nil)
		if dry, is := dryOf(err); is {
			return s.dryShard(ctx, l, c, &gated, dry)
		}
		return r, err
	}
	if req.Key == "" {
		l.Refuse(no.Outcome)
		return no, nil
	}
	return s.ask(ctx, l, c, &req, full, &no)
}

// ask asks the engine. A claim that is not to be granted any more, since the
// backlog is full or a gate said no, may be the repeat of one that was. An errShardDry
// names the user's shard when it has too little left, and there are others.
func (s *Claims) ask(ctx context.Context, l *live.Campaign, c *dibs.Campaign, req *dibs.ClaimRequest, full bool, no *dibs.Result) (dibs.Result, error) {
	if s.guard != nil {
		mark, ok := s.guard.Enter()
		if !ok {
			l.Refuse(dibs.Overloaded)
			return dibs.Result{}, dibs.Shed(req.Key != "")
		}
		// From here on it is answered, whatever comes.
		defer s.guard.Leave(mark)
	}
	d, shard, err := s.decideWhere(ctx, c, dibs.EngineClaim{
		Shard: c.ShardOf(req.UserID), UserID: req.UserID, Quantity: req.Quantity, Key: dibs.KeyHash(req.Key), Reference: req.Reference,
		OnlyRepeat: full || no != nil, Shards: c.Shards,
	})
	if err != nil {
		if errors.Is(err, dibs.ErrNotOpen) {
			again := *req
			return s.notOpenNow(ctx, l, &again, shard)
		}
		if errors.Is(err, dibs.ErrStale) {
			// The key was not looked up.
			return dibs.Result{}, s.failed(l, req.Unlooked(beingSpread))
		}
		// It may be granted all the same.
		l.Rouse()
		if s.engine.Shared() {
			// It may have failed on the way to where keys are looked up.
			err = req.Unlooked(err)
		}
		return dibs.Result{}, s.failed(l, err)
	}
	if d.Outcome == dibs.Unavailable {
		return dibs.Result{}, s.failed(l, notNow(l))
	}
	if d.Outcome == dibs.Overloaded && no != nil {
		l.Refuse(no.Outcome)
		return *no, nil
	}
	if d.Outcome == dibs.Overloaded {
		l.Refuse(dibs.Overloaded)
		return dibs.Result{}, backlogFull
	}
	if d.Outcome == dibs.SoldOut && c.Shards > 1 {
		return dibs.Result{}, errShardDry(shard)
	}
	if s.ledgered && d.Outcome == dibs.Granted {
		began := time.Now()
		if err := s.intoLedger(ctx, l.Shard(d.Grant.Shard), d.Grant.Position); err != nil {
			return dibs.Result{}, s.failed(l, dibs.Unavail(dibs.EffectUnknown, err))
		}
		s.ledgerTimes.Since(began)
	}
	r := s.resultOf(l, c, &d)
	if r.Replayed && d.Grant.Released {
		// Whether it was released or refunded, the ledger knows.
		if claim, err := s.Find(ctx, r.Claim.ID); err == nil {
			r.Claim = claim
		}
	}
	if req.Reference != "" && r.Outcome == dibs.Granted {
		r = s.refer(ctx, c, req.Reference, r)
	}
	return r, nil
}

// notNow is why the engine grants nothing of a campaign just now.
func notNow(l *live.Campaign) error {
	for _, t := range l.Shards {
		if st := t.Seen(); st != nil && st.Uncounted != 0 {
			return uncounted
		}
	}
	return LevelLost
}

// TokenEnded reports whether the token of a claim that has waited has ended, or was revoked, since the caller checked it.
// It is asked after each wait, right before the claim is decided; a claim that waits for nothing does without.
func (s *Claims) TokenEnded(req *dibs.ClaimRequest) bool {
	if req.Until.IsZero() && req.TokenID == "" && req.Issued.IsZero() {
		// It came without a token, from a program that uses the library.
		return false
	}
	return !req.Until.IsZero() && !time.Now().Before(req.Until) || s.revoked != nil && s.revoked(req.UserID, req.TokenID, req.Issued)
}

// refuse asks the gates of a campaign that has some.
func (s *Claims) refuse(ctx context.Context, c *dibs.Campaign, req *dibs.ClaimRequest) (no dibs.Result, refused bool) {
	if sampled() {
		defer s.gateTimes.Since(time.Now())
	}
	for _, g := range s.gates {
		if r, ok := g.Pass(ctx, c, req); !ok {
			r.Campaign = c
			return r, true
		}
	}
	return no, false
}

// decideWhere asks the engine, and returns the shard that has decided, or that could
// not. Where a campaign has more shards than it began with, a user may be on one from
// before: each of those is asked first, and decides for the users that it knows.
func (s *Claims) decideWhere(ctx context.Context, c *dibs.Campaign, claim dibs.EngineClaim) (dibs.Decision, uint8, error) {
	if c.EarlierShards != nil {
		for _, earlier := range c.EarlierShardsOf(claim.UserID) {
			known := claim
			known.Shard, known.OnlyKnown = earlier, true
			if d, err := s.decide(ctx, known); err != nil || d.Outcome != dibs.NotFound {
				return d, earlier.Shard, err
			}
		}
	}
	d, err := s.decide(ctx, claim)
	return d, claim.Shard.Shard, err
}

// decide asks the engine, and times some of the grants.
func (s *Claims) decide(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	if !sampled() {
		return s.engine.Claim(ctx, req)
	}
	began := time.Now()
	d, err := s.engine.Claim(ctx, req)
	if err == nil && d.Outcome == dibs.Granted {
		s.engineTimes.Since(began)
	}
	return d, err
}

// intoLedger returns when the ledger has a grant. Where an engine lost it and
// went on in a later epoch, the position passes its place without it.
func (s *Claims) intoLedger(ctx context.Context, t *live.Shard, p dibs.Position) error {
	if err := s.settler.SettleTo(ctx, t, p.Cursor); err != nil || t.At().Epoch == p.Epoch {
		return err
	}
	_, err := s.ledger.Claim(ctx, p)
	if !errors.Is(err, dibs.ErrNotFound) {
		return err
	}
	if aside, asideErr := s.aside.IsAside(ctx, p); aside || asideErr != nil {
		return asideErr
	}
	return err
}

// resultOf dresses an engine's decision.
func (s *Claims) resultOf(l *live.Campaign, c *dibs.Campaign, d *dibs.Decision) dibs.Result {
	r := dibs.Result{Outcome: d.Outcome, Replayed: d.Replayed, Remaining: d.Remaining, OfProduct: d.OfProduct, Campaign: c}
	switch d.Outcome {
	case dibs.Granted:
		r.Claim = s.of(c, &d.Grant)
		if d.Replayed {
			s.replayed.Add(1)
			break
		}
		s.granted.Add(1)
		l.Shard(d.Grant.Shard).Rouse()
	case dibs.LimitReached:
		r.ClaimIDs = make([]string, len(d.Held))
		for i, p := range d.Held {
			r.ClaimIDs[i] = s.ids.Encode(p)
		}
		fallthrough
	default:
		l.Refuse(d.Outcome)
	}
	return r
}

// of is a grant as a claim that has not changed since.
func (s *Claims) of(c *dibs.Campaign, g *dibs.Grant) *dibs.Claim {
	status := c.InitialStatus()
	if g.Released {
		status = dibs.Released
	}
	claim := &dibs.Claim{
		Position: g.Position, ID: s.ids.Encode(g.Position), CampaignID: c.ID, ProductID: c.ProductID, Kind: c.Kind, UserID: g.UserID,
		Quantity: g.Quantity, Status: status, OrderType: dibs.FlashOrder, Items: g.Items,
		Amount: c.AmountFor(g.Quantity), PayBy: dibs.FromMS(g.PayBy), CreatedAt: dibs.FromMS(g.At), UpdatedAt: dibs.FromMS(g.At),
	}
	if c.Kind == dibs.Coupon {
		claim.ValidUntil = c.ValidUntilFor(claim)
	}
	c.OpenShares(claim)
	return claim
}

// failed counts and shapes an engine's error.
func (s *Claims) failed(l *live.Campaign, err error) error {
	var e *dibs.Error
	if !errors.As(err, &e) {
		e = dibs.Unavail(dibs.EffectUnknown, err)
	}
	l.Refuse(e.Reason)
	return e
}

// LevelLost is the refusal of a claim whose yes would survive less than the level
// says.
var LevelLost = &dibs.Error{
	Reason: dibs.Unavailable, Effect: dibs.EffectNone, RetryAfter: time.Second,
	Detail: dibs.Text{
		EN: "a claim could not be kept as safely as promised now; claims go on when it can",
		ZH: "当前无法按承诺的持久级别保存领取结果，恢复后将继续",
	},
}

// beingSpread refuses a claim while a campaign gets more shards: this node, or the
// shard, does not know yet.
var beingSpread = &dibs.Error{
	Reason: dibs.Unavailable, Effect: dibs.EffectNone, RetryAfter: time.Second,
	Detail: dibs.Text{EN: "the campaign is being divided over more shards: try again", ZH: "活动正在扩展到更多分片，请稍后重试"},
}

var (
	uncounted = &dibs.Error{
		Reason: dibs.Unavailable, Effect: dibs.EffectNone, RetryAfter: time.Second,
		Detail: dibs.Text{
			EN: "the campaigns that share the limit of this product are being loaded; claims go on when all are counted",
			ZH: "正在加载共享该产品限购的活动，全部计入后将继续",
		},
	}
	// ErrTokenEnded refuses a claim whose token ended, or was revoked, while it waited. It was not decided.
	ErrTokenEnded = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the token ended while the claim waited for its turn", ZH: "请求排队期间令牌已失效"})
	backlogFull   = &dibs.Error{
		Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second,
		Detail: dibs.Text{EN: "too many claims wait to be settled", ZH: "待结算的记录过多"},
	}
)

// sampleOf is of how many claims one is timed: two looks at the clock would be
// a good part of what a refusal costs.
const sampleOf = 64

// sampled picks one of sampleOf by the random source of each thread, so that
// claims write nothing that others read.
func sampled() bool { return rand.Uint64()%sampleOf == 0 }

// Guard bounds the claims that the engine decides at a time. It is asked by all
// claims at once, after the gates and before the engine, so its cost is part of the
// claim path.
type Guard interface {
	// Enter takes a place for a claim; false means that there is none, and that
	// the claim is to be refused. mark is for Leave.
	Enter() (mark int64, ok bool)
	// Leave gives the place back once the claim is answered.
	Leave(mark int64)
}
