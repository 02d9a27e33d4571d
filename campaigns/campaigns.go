package campaigns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/moving"
)

// Ledger keeps campaigns, products and stock.
type Ledger interface {
	// Audience returns a list. ErrNotFound.
	Audience(ctx context.Context, id string) (*dibs.Audience, error)
	// FundCampaign is UpdateCampaign for a red packet that is being published: in
	// the same transaction its total moves from the sender, or the platform, into
	// escrow. An *Error of InsufficientFunds, and no change, when the sender has
	// less; of InvalidRequest as in Deposit.
	FundCampaign(ctx context.Context, c *dibs.Campaign) error
	// InsertProduct stores a new product. ErrAlreadyExists.
	InsertProduct(ctx context.Context, p *dibs.Product) error
	// UpdateProduct stores p where the stored Version is p.Version, and raises
	// it in p. Units of the regular stock that are ordered stay ordered: StockLeft
	// follows Stock, in p too, and a Stock below what is ordered is an *Error of
	// InvalidState. ErrConflict, ErrNotFound.
	UpdateProduct(ctx context.Context, p *dibs.Product) error
	// Product returns one. ErrNotFound.
	Product(ctx context.Context, id string) (*dibs.Product, error)
	// Products lists by id.
	Products(ctx context.Context, page dibs.Page) (dibs.List[dibs.Product], error)
	// InsertCampaign stores a new campaign with its items (nil for units) and
	// sets its Number. ErrAlreadyExists.
	InsertCampaign(ctx context.Context, c *dibs.Campaign, items []string) error
	// UpdateCampaign stores c where the stored Version is c.Version, and raises
	// it in c. Stock is not changed by it. ErrConflict, ErrNotFound.
	UpdateCampaign(ctx context.Context, c *dibs.Campaign) error
	// Campaign returns one by id, CampaignByNumber by number. ErrNotFound.
	Campaign(ctx context.Context, id string) (*dibs.Campaign, error)
	// Campaigns lists newest first; states filters when it is not empty, and product when
	// it is not "".
	Campaigns(ctx context.Context, states []dibs.State, product string, page dibs.Page) (dibs.List[dibs.Campaign], error)
	// LiveCampaigns returns every campaign that is published or paused and ends
	// after a time.
	LiveCampaigns(ctx context.Context, after time.Time) ([]*dibs.Campaign, error)
	// Restock adds stock to the ledger and writes the engine's command to the
	// outbox, in one transaction; a repeat of the Ref changes nothing. A negative
	// Delta beyond what is left is an *Error of InvalidState. ErrConflict, and no change,
	// when the campaign's stock is not r.Of, where that is set.
	Restock(ctx context.Context, r Restock) error
	// Import adds items to a campaign of items, as Restock does, and returns how
	// many; 0 for a repeat of the Ref. An item that comes twice, or that the
	// campaign has, is an *Error of InvalidRequest that names its line. The commands to
	// the engine have the refs of CommandRef.
	Import(ctx context.Context, in Import) (int64, error)
	// FreeItems lists the items of a campaign that no claim has and that were not
	// withdrawn, by their numbers.
	FreeItems(ctx context.Context, campaign uint32, page dibs.Page) (dibs.List[FreeItem], error)
	// AbandonShard takes a shard off the deployment that it is on, which it returns, and
	// raises its epoch. An *Error of InvalidState when unsold is not nil and not what is
	// left of it, or when it is on no deployment. ErrNotFound.
	AbandonShard(ctx context.Context, shard dibs.ShardID, unsold *int64) (from int, err error)
	// DeploymentOf returns the number of the deployment that a shard is on; 0 for none.
	// ErrNotFound.
	DeploymentOf(ctx context.Context, shard dibs.ShardID) (int, error)
	// StockChanges returns by how much the stock was changed under a caller's ref: the
	// deltas that are recorded under ref itself and under ref with a space and more after
	// it (see PartRef), those of withdrawals in quarantine too.
	StockChanges(ctx context.Context, campaign uint32, ref string) ([]int64, error)
}

// Campaigns drafts, publishes and changes campaigns, and their stock. All methods are safe
// for concurrent use: of two changes of one version of a campaign, the ledger takes one.
type Campaigns struct {
	registry   *live.Registry
	settler    *live.Settler
	loader     *live.Loader
	quarantine *live.Quarantine
	outbox     *live.Outbox
	cfg        Config
}

// Config is what Campaigns and Products are made of.
type Config struct {
	Live          *live.Node
	Engine        dibs.Engine
	Ledger        Ledger
	Moving        *moving.Mover
	Logger        *slog.Logger
	Now           func() time.Time
	LedgerTimeout time.Duration
	// Split divides a red packet into its shares; without it red packets are refused.
	Split func(dibs.RedPacketSpec) ([]int64, error)
	// Deployments are the numbers of the engine's deployments; none where it has none.
	Deployments []int
}

// New returns Campaigns, and Products, on a node.
func New(c Config) (*Campaigns, *Products) {
	all := &Campaigns{
		registry: c.Live.Registry, settler: c.Live.Settler, loader: c.Live.Loader, quarantine: c.Live.Quarantine, outbox: c.Live.Outbox,
		cfg: c,
	}
	return all, &Products{campaigns: all, ledger: c.Ledger, now: c.Now}
}

// Create stores a new draft. *Error of InvalidRequest with every
// fault, or of AlreadyExists.
func (s *Campaigns) Create(ctx context.Context, spec dibs.CampaignSpec) (*dibs.Campaign, error) {
	c, err := spec.Campaign(s.cfg.Now())
	if err != nil {
		return nil, err
	}
	if err := s.tooManyShards(c); err != nil {
		return nil, err
	}
	if err := errors.Join(s.countsProducts(c), s.productExists(ctx, c), s.audienceExists(ctx, c)); err != nil {
		return nil, err
	}
	items := spec.Stock.Items
	switch c.Stock.Kind {
	case dibs.Codes:
		items = dibs.GenerateCodes(c.Stock.Pattern, c.Stock.Total, nil)
	case dibs.Shares:
		if items, err = s.divide(c.Packet); err != nil {
			return nil, err
		}
	}
	return c, dibs.AsUnavailable(s.cfg.Ledger.InsertCampaign(ctx, c, items), dibs.EffectUnknown)
}

// countsProducts refuses a limit per product where the engine cannot count over
// campaigns.
func (s *Campaigns) countsProducts(c *dibs.Campaign) error {
	if c.LimitedProduct() == "" || c.State != dibs.Draft || s.cfg.Engine.Abilities().Counts != nil {
		return nil
	}
	return dibs.Invalid(live.NoProductLimits)
}

// tooManyShards refuses more shards than the engine takes.
func (s *Campaigns) tooManyShards(c *dibs.Campaign) error {
	most := s.cfg.Engine.MaxShards()
	if c.Shards <= most {
		return nil
	}
	return dibs.Invalid(dibs.Fault{Field: "/shards", Problem: dibs.Textf(
		"must be at most %d with this engine; campaigns of several shards are for Redis", "此引擎最多为 %d；多分片活动需要 Redis", most)})
}

// productExists checks the campaign's product.
func (s *Campaigns) productExists(ctx context.Context, c *dibs.Campaign) error {
	if c.ProductID == "" {
		return nil
	}
	_, err := s.cfg.Ledger.Product(ctx, c.ProductID)
	if errors.Is(err, dibs.ErrNotFound) {
		return dibs.Invalid(dibs.Fault{Field: "/product_id", Problem: dibs.Text{EN: "names no product", ZH: "没有这个商品"}})
	}
	return err
}

// audienceExists checks the list that a campaign is for.
func (s *Campaigns) audienceExists(ctx context.Context, c *dibs.Campaign) error {
	if c.Gate == nil || c.Gate.Audience == nil || c.Gate.Audience.List == "" {
		return nil
	}
	_, err := s.cfg.Ledger.Audience(ctx, c.Gate.Audience.List)
	if errors.Is(err, dibs.ErrNotFound) {
		return dibs.Invalid(dibs.Fault{Field: "/gate/audience/list", Problem: dibs.Text{EN: "names no list: import it first", ZH: "没有这个名单：请先导入"}})
	}
	return err
}

// divide makes the values of a red packet's shares, and trusts nobody with the
// sum.
func (s *Campaigns) divide(p *dibs.RedPacketSpec) ([]string, error) {
	if s.cfg.Split == nil {
		return nil, errNoSplit
	}
	shares, err := s.cfg.Split(*p)
	if err != nil {
		return nil, fmt.Errorf("dibs: dividing a red packet: %w", err)
	}
	values := make([]string, len(shares))
	left := p.Total.Amount
	for i, amount := range shares {
		if amount < p.Min || p.Max != 0 && amount > p.Max {
			return nil, fmt.Errorf("dibs: dividing a red packet: a share of %d is not from %d to %d", amount, p.Min, p.Max)
		}
		left -= amount
		values[i] = ShareValue(strconv.Itoa(i+1), amount)
	}
	if left != 0 || int64(len(shares)) != p.Count {
		return nil, fmt.Errorf("dibs: dividing a red packet: %d shares leave %d of the total", len(shares), left)
	}
	return values, nil
}

// Get returns a campaign as this node knows it, drafts included. ErrNotFound.
func (s *Campaigns) Get(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.registry.Get(ctx, id)
}

// Now is Get with the changes that were made through other nodes until now.
func (s *Campaigns) Now(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.registry.Now(ctx, id)
}

// List lists campaigns, newest first: all, or those of a product. public leaves drafts
// out.
func (s *Campaigns) List(ctx context.Context, public bool, product string, page dibs.Page) (dibs.List[dibs.Campaign], error) {
	var states []dibs.State
	if public {
		states = []dibs.State{dibs.Published, dibs.PausedState, dibs.EndedState}
	}
	return s.cfg.Ledger.Campaigns(ctx, states, product, page)
}

// Patch changes a campaign. *Error of InvalidState, naming the fields,
// for what its state does not allow, and naming the version when the campaign has
// another one than the patch; of InvalidRequest for values that are bad in any state.
//
// A draft's stock is changed after the other fields: when that fails, the same patch
// again makes both what it says.
func (s *Campaigns) Patch(ctx context.Context, id string, p dibs.CampaignPatch) (*dibs.Campaign, error) {
	return s.PatchIf(ctx, id, p, func(*dibs.Campaign) error { return nil })
}

// PatchIf is Patch where may returns nil for the campaign that is changed; otherwise it returns the error of may. may is
// called with the version that the change replaces, so that no publication comes between its decision and the change. It
// may be called several times, and must not change the campaign.
func (s *Campaigns) PatchIf(ctx context.Context, id string, p dibs.CampaignPatch, may func(*dibs.Campaign) error) (*dibs.Campaign, error) {
	c, err := s.Change(ctx, id, func(c *dibs.Campaign) error {
		if err := may(c); err != nil {
			return err
		}
		// Stored by compare-and-set, so that the version holds until the change is made.
		if p.Version != nil && *p.Version != c.Version {
			return changedMeanwhile(c, *p.Version)
		}
		if fs := p.Faults(c); len(fs) > 0 && c.State == dibs.Draft {
			return dibs.Invalid(fs...)
		} else if len(fs) > 0 {
			return &dibs.Error{Reason: dibs.InvalidState, Faults: fs, Detail: dibs.Textf(
				"these fields cannot change so while the campaign is %s", "活动状态为 %s 时，这些字段不能这样修改", c.State)}
		}
		shards := c.Shards
		p.Apply(c)
		if fs := c.Faults(); len(fs) > 0 {
			return dibs.Invalid(fs...)
		}
		if c.Shards != shards && c.State != dibs.Draft && !s.cfg.Now().Before(c.EndsAt) {
			return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign is over: it gets no more shards", ZH: "活动已经结束，不能再增加分片"})
		}
		return errors.Join(s.tooManyShards(c), s.countsProducts(c), s.productExists(ctx, c), s.audienceExists(ctx, c))
	})
	if err != nil {
		return c, err
	}
	units, given := p.StockOf()
	if !given {
		return c, nil
	}
	return s.setStock(ctx, c, units)
}

// setStock makes a draft's stock what a patch says. The number that the change is counted from has to be there still when
// it is made: else the same patch, sent again or by another administrator meanwhile, would be counted twice.
func (s *Campaigns) setStock(ctx context.Context, c *dibs.Campaign, units int64) (*dibs.Campaign, error) {
	for range dibs.MaxConflicts {
		of := c.Stock.Total
		if units == of {
			return c, nil
		}
		changed, err := s.changeStock(ctx, c.ID, dibs.StockChange{Delta: units - of, Why: "the draft was changed"}, "", &of)
		if !errors.Is(err, dibs.ErrConflict) {
			return changed, err
		}
		if c, err = s.cfg.Ledger.Campaign(ctx, c.ID); err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
	}
	return nil, dibs.Unavail(dibs.EffectUnknown, dibs.ErrConflict)
}

// Publish opens a draft for claims and warms the engine. Publishing again
// changes nothing.
func (s *Campaigns) Publish(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.PublishVersion(ctx, id, nil)
}

// PublishVersion is Publish of one version of a draft, nil for any: a draft that was
// changed since is refused by an *Error of InvalidState that names the version.
func (s *Campaigns) PublishVersion(ctx context.Context, id string, version *int64) (*dibs.Campaign, error) {
	return s.Change(ctx, id, func(c *dibs.Campaign) error {
		if c.State == dibs.Published {
			return nil
		}
		if version != nil && *version != c.Version {
			return changedMeanwhile(c, *version)
		}
		if c.State != dibs.Draft {
			return wrongState(c, "publish", "发布")
		}
		if !s.cfg.Now().Before(c.EndsAt) {
			return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "ends_at has passed", ZH: "ends_at 已过"})
		}
		if c.Stock.Total == 0 {
			return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign has nothing to give: import its codes, or restock it", ZH: "活动没有库存：请先导入券码或补货"})
		}
		if err := errors.Join(s.countsProducts(c), s.takeProductPrice(ctx, c)); err != nil {
			return err
		}
		c.State = dibs.Published
		return nil
	})
}

// takeProductPrice fixes the price at publishing. A product that is off sale is not
// published.
func (s *Campaigns) takeProductPrice(ctx context.Context, c *dibs.Campaign) error {
	if c.ProductID == "" {
		return nil
	}
	p, err := s.cfg.Ledger.Product(ctx, c.ProductID)
	if err != nil {
		return fmt.Errorf("dibs: reading the product of campaign %s: %w", c.ID, err)
	}
	if p.Status == dibs.OffSale {
		return dibs.Fail(dibs.InvalidState, dibs.Textf("the product %s is off sale: put it on sale, then publish", "商品 %s 已下架：请先上架再发布", p.ID))
	}
	if c.Price != nil || c.Kind == dibs.RedPacket {
		return nil
	}
	if c.Price = p.Price; c.Price == nil && len(c.Tiers) > 0 {
		return dibs.Invalid(dibs.Fault{Field: "/tiers", Problem: dibs.NeedPrice})
	}
	if fs := c.Faults(); len(fs) > 0 {
		return dibs.Invalid(fs...)
	}
	return nil
}

// Pause makes claims be refused with Paused until Resume. When it returns, no
// later claim is granted.
func (s *Campaigns) Pause(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.moveState(ctx, id, dibs.PausedState, "pause", "暂停", dibs.Published)
}

// Resume opens a paused campaign again.
func (s *Campaigns) Resume(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.moveState(ctx, id, dibs.Published, "resume", "恢复", dibs.PausedState)
}

// End ends a campaign for good. When it returns, no later claim is granted.
func (s *Campaigns) End(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.moveState(ctx, id, dibs.EndedState, "end", "结束", dibs.Published, dibs.PausedState)
}

func (s *Campaigns) moveState(ctx context.Context, id string, to dibs.State, doing, doingZH string, from ...dibs.State) (*dibs.Campaign, error) {
	return s.Change(ctx, id, func(c *dibs.Campaign) error {
		if c.State == to {
			return nil
		}
		if !slices.Contains(from, c.State) {
			return wrongState(c, doing, doingZH)
		}
		if c.State = to; to == dibs.EndedState {
			c.EndedAt = dibs.Ms(s.cfg.Now())
		}
		return nil
	})
}

// Change applies a change to a copy of the campaign, stores it by
// compare-and-set, and then makes the engine follow.
func (s *Campaigns) Change(ctx context.Context, id string, change func(*dibs.Campaign) error) (*dibs.Campaign, error) {
	c, unlock, err := s.registry.Lock(ctx, id)
	if err == nil {
		defer unlock()
	}
	for range dibs.MaxConflicts {
		if errors.Is(err, dibs.ErrNotFound) {
			return nil, dibs.NoSuchCampaign
		}
		if err != nil {
			return nil, err
		}
		before := *c
		if err := change(c); err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(*c, before) {
			c.UpdatedAt = dibs.Ms(s.cfg.Now())
			err = s.storeChange(ctx, c, &before)
		}
		if errors.Is(err, dibs.ErrConflict) {
			c, err = s.cfg.Ledger.Campaign(ctx, id)
			continue
		}
		if err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
		return c, dibs.Unsure(s.follow(ctx, c))
	}
	return nil, dibs.Unavail(dibs.EffectNone, dibs.ErrConflict)
}

// storeChange stores a changed campaign. A red packet is paid for in the
// transaction that publishes it.
func (s *Campaigns) storeChange(ctx context.Context, c, before *dibs.Campaign) error {
	if c.Kind == dibs.RedPacket && before.State == dibs.Draft && c.State == dibs.Published {
		return s.cfg.Ledger.FundCampaign(ctx, c)
	}
	return s.cfg.Ledger.UpdateCampaign(ctx, c)
}

// follow makes the engine hold and obey a campaign as the ledger has it.
func (s *Campaigns) follow(ctx context.Context, c *dibs.Campaign) error {
	defer s.registry.Changed()
	if s.registry.Sells(c) {
		if err := s.loader.Admit(ctx, c); err != nil {
			if s.cfg.Engine.Shared() && c.State != dibs.Published {
				// Its shards may be sold by other nodes, or by this one, which lacks some: they
				// obey a pause all the same. The caller is told why it is not taken up here.
				_ = s.cfg.Engine.Configure(ctx, c)
			}
			return err
		}
	}
	if l := s.registry.Live(c.ID); l != nil {
		l.Renew(c)
	} else if c.State == dibs.Draft || !s.cfg.Engine.Shared() || s.registry.Over(c) {
		return nil
	}
	// Somebody may be loading it by the definition before.
	for until := time.Now().Add(live.OpenPatience); ; {
		err := s.cfg.Engine.Configure(ctx, c)
		if errors.Is(err, dibs.ErrNotOpen) && s.cfg.Engine.Shared() && time.Now().Before(until) && wait.Sleep(ctx, live.JoinEvery) {
			continue
		}
		if err == nil || onlyNotOpen(err) && !s.registry.Sells(c) {
			return nil
		}
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
}

// onlyNotOpen reports whether each error of Configure is that a shard is not open. Beside
// one that is not, another may go on to sell by the definition before: its server was not
// reached.
func onlyNotOpen(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return errors.Is(err, dibs.ErrNotOpen)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !onlyNotOpen(err) })
}

// changedMeanwhile refuses a change that was made of another version.
func changedMeanwhile(c *dibs.Campaign, of int64) error {
	return &dibs.Error{
		Reason: dibs.InvalidState,
		Detail: dibs.Text{EN: "the campaign was changed meanwhile: read it again, and decide", ZH: "活动已被他人修改：请重新读取后再决定"},
		Faults: []dibs.Fault{{Field: "/version", Problem: dibs.Textf("is %d by now, not %d", "当前为 %d，而非 %d", c.Version, of)}},
	}
}

// wrongState refuses a step that the campaign's state does not allow.
func wrongState(c *dibs.Campaign, doing, doingZH string) error {
	return dibs.Fail(dibs.InvalidState, dibs.Textf("cannot %[1]s a campaign that is %[3]s", "状态为 %[3]s 的活动不能%[2]s", doing, doingZH, c.State))
}
