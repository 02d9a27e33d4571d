package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Ledger keeps what this node takes into the engine and out of it.
type Ledger interface {
	// Campaign returns one by id, CampaignByNumber by number. ErrNotFound.
	Campaign(ctx context.Context, id string) (*dibs.Campaign, error)
	CampaignByNumber(ctx context.Context, number uint32) (*dibs.Campaign, error)
	// LiveCampaigns returns every campaign that is published or paused and ends
	// after a time.
	LiveCampaigns(ctx context.Context, after time.Time) ([]*dibs.Campaign, error)
	// LiveVersions is LiveCampaigns with the numbers and versions alone, ordered by
	// number: what every node asks for each second, to read what has changed.
	LiveVersions(ctx context.Context, after time.Time) ([]CampaignVersion, error)
	// LoadShard raises the shard's epoch and reads the shard, in one transaction.
	// Outbox commands of the shard written before are dropped by it: the load
	// counts what they carry. Grants in quarantine are among the holdings, and as
	// many items as they take are not free. ErrElsewhere when another server holds
	// the shard, was seen within ServerLife, and knows more of the shard than the
	// opener's does: the shard is not changed then. But of two servers that were both
	// refused a shard within ServerLife, the one that holds more shards of live campaigns,
	// or as many and the first, gets the rest once it has waited for longer than that: else
	// each would wait for the other without end. ErrOtherDeployment likewise, when
	// the shard is on another deployment than the opener's.
	LoadShard(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID, by Opener) (*dibs.ShardLoad, error)
	// Fence raises a shard's epoch as LoadShard does, and reads nothing: no batch
	// that was read before is taken any more, and a load that is under way has to
	// be made again. ErrPositionMoved when epoch or position are not those of seen any
	// more: the shard may have been opened and settled since, and with nothing left to
	// settle no node would find out. ErrElsewhere and ErrOtherDeployment as in LoadShard.
	Fence(ctx context.Context, shard dibs.ShardID, by Opener, seen ShardTotals) (ShardTotals, error)
	// SeeServers notes that the servers were seen alive just now, by the clock that
	// all processes of the ledger share, and that the gone ones are so no more. It
	// returns the shards of live campaigns that servers hold which are not among the
	// seen ones.
	SeeServers(ctx context.Context, seen, gone []string) (elsewhere []dibs.ShardID, err error)
	// Settle writes batches of different shards in one transaction: claims,
	// items, stock_left and totals once per batch, and the position by
	// compare-and-set. ErrFenced when a shard's epoch is not the batch's Fence;
	// ErrPositionMoved when a batch does not continue its shard's committed
	// position; ErrPoison when it has an entry that no repeat will make settle;
	// ErrForked when the ledger has a claim at an entry's place already; ErrNotLeft when
	// units arrive that have not left, unless the batch has UnknownTransfers. Nothing is written then.
	Settle(ctx context.Context, batches []Batch) error
	// SettleTransfer settles the donor's half of a transfer of units at once, which the
	// engine has decided in the epoch fence: the position stays, and the journal's entry
	// changes nothing when its turn comes, nor does a repeat. ErrFenced when the donor's
	// epoch is another one, ErrCorrupt when there is no such recipient.
	SettleTransfer(ctx context.Context, from dibs.ShardID, fence uint16, t dibs.Transfer, units int64) error
	// Totals returns a shard's sums. ErrNotFound.
	Totals(ctx context.Context, shard dibs.ShardID) (ShardTotals, error)
	// Commands returns the oldest waiting commands after an ID.
	Commands(ctx context.Context, after int64, max int) ([]Command, error)
	// DropCommands removes commands that the engine has carried out: of each id the one of
	// its shard and epoch that does the same. A ledger that went back in time gives an id again.
	DropCommands(ctx context.Context, commands []Command) error
	// Quarantine records the batch's only entry, which Settle refused with
	// ErrPoison, and moves the position past it, in one transaction. The entry
	// takes from stock_left, and a grant adds to the totals, as a settled one
	// would, but never more than is left. ErrFenced and ErrPositionMoved as in
	// Settle; ErrForked when the ledger has a claim at the entry's place; ErrCorrupt for
	// an entry that is neither a grant nor a withdrawal.
	Quarantine(ctx context.Context, b Batch, why string) error
	// Quarantined lists the entries in quarantine that a filter names, by their places.
	Quarantined(ctx context.Context, f QuarantineFilter, max int) ([]Quarantined, error)
	// CountQuarantined counts the entries in quarantine of each shard that has some.
	CountQuarantined(ctx context.Context) (map[dibs.ShardID]int64, error)
}

// Registry has the campaigns that this node holds: what every other part asks
// first. Its maps may be read at any time; a campaign is put in once all its shards
// are open, by Loader, and taken out by Drop. All methods are safe for concurrent
// use.
type Registry struct {
	engine        dibs.Engine
	ledger        Ledger
	now           func() time.Time
	ledgerTimeout time.Duration

	// byID are the campaigns that the engine holds, by id and by number.
	byID     sync.Map // string -> *Campaign
	byNumber sync.Map // uint32 -> *Campaign
	products products
	// admin makes changes of campaigns happen one at a time on this node.
	admin wait.Lock
	// catalog rises when this node learns that any campaign has changed.
	catalog atomic.Int64

	// Elsewhere counts refusals of claims on campaigns that are not live here.
	Elsewhere [dibs.ReasonCount]atomic.Int64
	// leaving guards gone: what campaigns refused that are not live here any more.
	leaving sync.Mutex
	gone    [dibs.ReasonCount]int64
}

// shared is what most parts have in common. None of it changes.
type shared struct {
	registry      *Registry
	engine        dibs.Engine
	ledger        Ledger
	log           *slog.Logger
	life          context.Context
	now           func() time.Time
	tracer        dibs.Tracer
	maxBacklog    int64
	ledgerTimeout time.Duration
}

// Live returns a campaign that this node holds; nil when it does not.
func (s *Registry) Live(id string) *Campaign {
	if v, ok := s.byID.Load(id); ok {
		return v.(*Campaign)
	}
	return nil
}

// liveByNumber is Live by the campaign's number.
func (s *Registry) liveByNumber(number uint32) *Campaign {
	if v, ok := s.byNumber.Load(number); ok {
		return v.(*Campaign)
	}
	return nil
}

// Put makes a campaign live, whose shards are open.
func (s *Registry) Put(c *dibs.Campaign, l *Campaign) {
	s.byNumber.Store(c.Number, l)
	s.byID.Store(c.ID, l)
	s.Changed()
}

// Changed notes that this node has learnt of a change of some campaign.
func (s *Registry) Changed() { s.catalog.Add(1) }

// CatalogVersion rises when this node learns that some campaign has changed, on
// whichever node: what was read of the campaigns before may be stale then.
func (s *Registry) CatalogVersion() int64 { return s.catalog.Load() }

// each, eachShard and eachSettling are to be ranged over. each has every campaign that is
// live here.
func (s *Registry) each(f func(*Campaign) bool) {
	s.byID.Range(func(_, v any) bool { return f(v.(*Campaign)) })
}

// Divided returns the campaigns with several shards that this node holds.
func (s *Registry) Divided() []*Campaign {
	var all []*Campaign
	for l := range s.each {
		if len(l.Shards) > 1 {
			all = append(all, l)
		}
	}
	return all
}

// eachSettling has every shard that this node settles.
func (s *Registry) eachSettling(f func(*Shard) bool) {
	s.eachShard(func(t *Shard) bool { return !t.Settles() || f(t) })
}

// eachShard has every shard of the campaigns that are live here.
func (s *Registry) eachShard(f func(*Shard) bool) {
	for l := range s.each {
		for _, t := range l.Shards {
			if !f(t) {
				return
			}
		}
	}
}

// Shard returns a shard of a campaign that this node holds; nil when it does not.
func (s *Registry) Shard(id dibs.ShardID) *Shard {
	l := s.liveByNumber(id.Campaign)
	if l == nil || int(id.Shard) >= len(l.Shards) {
		return nil
	}
	return l.Shards[id.Shard]
}

// Holds reports whether this node holds a campaign, from its memory: whether
// Held has it.
func (s *Registry) Holds(id string) bool {
	return s.Live(id) != nil
}

// Held returns the campaigns that this node holds, from its memory: those that
// are published or paused, and those that ended a while ago. It may be called
// often; the campaigns are read-only.
func (s *Registry) Held() []*dibs.Campaign {
	var held []*dibs.Campaign
	for l := range s.each {
		held = append(held, l.Def())
	}
	return held
}

// Get returns a campaign, drafts included. ErrNotFound.
func (s *Registry) Get(ctx context.Context, id string) (*dibs.Campaign, error) {
	if l := s.Live(id); l != nil {
		return l.Def(), nil
	}
	return existing(s.ledger.Campaign(ctx, id))
}

// existing says of a campaign that is not there that there is none.
func existing(c *dibs.Campaign, err error) (*dibs.Campaign, error) {
	if errors.Is(err, dibs.ErrNotFound) {
		return nil, dibs.NoSuchCampaign
	}
	return c, err
}

// Now is Get with the changes that were made through other nodes
// until now.
func (s *Registry) Now(ctx context.Context, id string) (*dibs.Campaign, error) {
	return existing(s.Reread(ctx, id))
}

// Reread reads a campaign that has changed from the ledger, and shows it to this
// node's readers.
func (s *Registry) Reread(ctx context.Context, id string) (*dibs.Campaign, error) {
	c, err := s.ledger.Campaign(ctx, id)
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	if l := s.Live(id); l != nil {
		l.Renew(c)
	}
	s.Changed()
	return c, nil
}

// GetByNumber returns a campaign by its number: from this node if it is live here, else from the
// ledger. ErrNotFound.
func (s *Registry) GetByNumber(ctx context.Context, number uint32) (*dibs.Campaign, error) {
	if l := s.liveByNumber(number); l != nil {
		return l.Def(), nil
	}
	c, err := s.ledger.CampaignByNumber(ctx, number)
	return c, dibs.AsUnavailable(err, dibs.EffectNone)
}

// Sells reports whether a campaign is one that the engine has to hold.
func (s *Registry) Sells(c *dibs.Campaign) bool { return c.Live() && s.now().Before(c.EndsAt) }

// retireAfter is how long an ended campaign stays in the engine, where repeats
// of its claims are cheap.
const retireAfter = 5 * time.Minute

// Over reports whether a campaign ended long enough ago to leave the engine. What is changed of one
// that was ended, such as its comment, does not bring it back.
func (s *Registry) Over(c *dibs.Campaign) bool {
	since, ended := s.now().Add(-retireAfter), c.EndedAt
	if ended.IsZero() {
		// An earlier version did not note it.
		ended = c.UpdatedAt
	}
	return c.State == dibs.EndedState && ended.Before(since) || c.EndsAt.Before(since)
}

// Lock takes this node's lock for changes of campaigns, and then reads the campaign.
// Both together have the time of one call of the ledger, so that callers do not queue
// behind each other while the ledger hangs. The caller calls unlock.
func (s *Registry) Lock(ctx context.Context, id string) (c *dibs.Campaign, unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	if err := s.admin.Take(ctx); err != nil {
		return nil, nil, err
	}
	if c, err = s.ledger.Campaign(ctx, id); err != nil {
		s.admin.Unlock()
		if ctx.Err() != nil {
			err = dibs.AsUnavailable(err, dibs.EffectNone)
		}
		return nil, nil, err
	}
	return c, s.admin.Unlock, nil
}

// glance returns a shard's numbers without asking another machine: as they are,
// or as they were seen last.
func (s *Registry) glance(ctx context.Context, t *Shard) (dibs.ShardStats, error) {
	if !s.engine.Shared() {
		return s.engine.Stats(ctx, t.ID)
	}
	if st := t.Seen(); st != nil {
		return *st, nil
	}
	return dibs.ShardStats{}, dibs.ErrNotOpen
}

// refusals adds all refusals of this node up and returns the live campaigns. A
// sum never falls: a campaign that leaves meanwhile is in it once.
func (s *Registry) refusals(sum *[dibs.ReasonCount]int64) (all []*Campaign) {
	s.leaving.Lock()
	defer s.leaving.Unlock()
	*sum = s.gone
	for r := range sum {
		sum[r] += s.Elsewhere[r].Load()
	}
	for l := range s.each {
		all = append(all, l)
		for r := range l.refused {
			sum[r] += l.refused[r].Load()
		}
	}
	return all
}

// Drop takes a campaign off this node. Its refusals stay counted.
func (s *Registry) Drop(c *dibs.Campaign) {
	s.leaving.Lock()
	defer s.leaving.Unlock()
	if v, ok := s.byID.LoadAndDelete(c.ID); ok {
		l := v.(*Campaign)
		for r := range l.refused {
			s.gone[r] += l.refused[r].Load()
		}
	}
	s.byNumber.Delete(c.Number)
}

// products knows which campaigns share a limit. The product of a published campaign
// never changes.
type products struct {
	known sync.Map // uint32 -> string
	count atomic.Int64
}

// maxProducts bounds the campaigns that are remembered.
const maxProducts = 1 << 16

// LimitedProduct returns the product whose limit a campaign shares, empty for none.
// ErrNotFound for a campaign that there is not.
func (s *Registry) LimitedProduct(number uint32) (string, error) {
	if l := s.liveByNumber(number); l != nil {
		return l.Def().LimitedProduct(), nil
	}
	if v, ok := s.products.known.Load(number); ok {
		return v.(string), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.ledgerTimeout)
	defer cancel()
	c, err := s.ledger.CampaignByNumber(ctx, number)
	if err != nil {
		return "", dibs.AsUnavailable(err, dibs.EffectNone)
	}
	if c.State != dibs.Draft {
		if s.products.count.Add(1) > maxProducts {
			s.products.known.Clear()
			s.products.count.Store(1)
		}
		s.products.known.Store(number, c.LimitedProduct())
	}
	return c.LimitedProduct(), nil
}
