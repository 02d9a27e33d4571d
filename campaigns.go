package dibs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// maxShards is 1 as long as stock is not moved between the shards of a
// campaign: a user whose shard is empty would be told that all is sold.
const maxShards = 1

// CreateCampaign stores a new draft. *Error of InvalidRequest with every
// fault, or of AlreadyExists.
func (s *Service) CreateCampaign(ctx context.Context, spec CampaignSpec) (*Campaign, error) {
	c, err := spec.Campaign(s.cfg.Now())
	if err != nil {
		return nil, err
	}
	if most := min(s.engine.MaxShards(), maxShards); c.Shards > most {
		return nil, Invalid(Fault{"/shards", Textf("must be at most %d with this engine", "此引擎最多为 %d", most)})
	}
	if err := errors.Join(s.productExists(ctx, c), s.audienceExists(ctx, c)); err != nil {
		return nil, err
	}
	items := spec.Stock.Items
	switch c.Stock.Kind {
	case Codes:
		items = generateCodes(c.Stock.Pattern, c.Stock.Total, nil)
	case Shares:
		if items, err = s.divide(c.Packet); err != nil {
			return nil, err
		}
	}
	if err := s.ledger.InsertCampaign(ctx, c, items); err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	return c, nil
}

// productExists checks the campaign's product.
func (s *Service) productExists(ctx context.Context, c *Campaign) error {
	if c.ProductID == "" {
		return nil
	}
	_, err := s.ledger.Product(ctx, c.ProductID)
	if errors.Is(err, ErrNotFound) {
		return Invalid(Fault{"/product_id", Text{"names no product", "没有这个产品"}})
	}
	return err
}

// Campaign returns a campaign, drafts included. ErrNotFound.
func (s *Service) Campaign(ctx context.Context, id string) (*Campaign, error) {
	if v, ok := s.lives.Load(id); ok {
		return v.(*live).campaign.Load(), nil
	}
	c, err := s.ledger.Campaign(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, noSuchCampaign
	}
	return c, err
}

// PublicCampaign is Campaign for users, whoever asks and however often: drafts
// are not found, and the ledger is asked once a second at most for a campaign
// that is not live here. ErrNotFound; *Error of Overloaded when too much is asked
// at once.
func (s *Service) PublicCampaign(ctx context.Context, id string) (*Campaign, error) {
	if v, ok := s.lives.Load(id); ok {
		return v.(*live).campaign.Load(), nil
	}
	return s.publicLookUp(ctx, id)
}

// CampaignNow is Campaign with the changes that were made through other nodes
// until now.
func (s *Service) CampaignNow(ctx context.Context, id string) (*Campaign, error) {
	c, err := s.freshCampaign(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, noSuchCampaign
	}
	return c, err
}

// Campaigns lists campaigns, newest first; public leaves drafts out.
func (s *Service) Campaigns(ctx context.Context, public bool, page Page) (List[Campaign], error) {
	var states []State
	if public {
		states = []State{Published, PausedState, EndedState}
	}
	return s.ledger.Campaigns(ctx, states, page)
}

// PatchCampaign changes a campaign. *Error of InvalidState, naming the fields,
// for what its state does not allow; of InvalidRequest for values that are bad
// in any state.
func (s *Service) PatchCampaign(ctx context.Context, id string, p CampaignPatch) (*Campaign, error) {
	return s.changeCampaign(ctx, id, func(c *Campaign) error {
		if fs := p.faults(c); len(fs) > 0 {
			return &Error{Reason: InvalidState, Faults: fs, Detail: Textf(
				"these fields cannot change so while the campaign is %s", "活动状态为 %s 时，这些字段不能这样修改", c.State)}
		}
		p.apply(c)
		if fs := c.faults(); len(fs) > 0 {
			return Invalid(fs...)
		}
		return errors.Join(s.productExists(ctx, c), s.audienceExists(ctx, c))
	})
}

// faults lists the fields that c's state does not allow to change.
func (p *CampaignPatch) faults(c *Campaign) []Fault {
	if c.State == Draft {
		return nil
	}
	var fs []Fault
	for _, fixed := range []struct {
		field string
		given bool
	}{
		{"/product_id", p.ProductID != nil},
		{"/starts_at", p.StartsAt != nil},
		{"/price", p.Price != nil},
		{"/tiers", p.Tiers != nil},
		{"/pay_within", p.PayWithin != nil},
		{"/late_payment", p.LatePayment != nil},
		{"/valid_for", p.ValidFor != nil},
		{"/valid_until_at", p.ValidUntil != nil},
	} {
		if fixed.given {
			fs = append(fs, Fault{fixed.field, Text{"cannot change after publishing", "发布后不能修改"}})
		}
	}
	if p.Limit != nil && *p.Limit < c.LimitPerUser {
		fs = append(fs, Fault{"/limit_per_user", Textf("may only rise after publishing, it is %d", "发布后只能提高，当前为 %d", c.LimitPerUser)})
	}
	fs = append(fs, p.Gate.changeFaults(c)...)
	if c.State == EndedState && p.EndsAt != nil {
		fs = append(fs, Fault{"/ends_at", Text{"cannot change once the campaign has been ended", "活动结束后不能修改"}})
	}
	return fs
}

func (p *CampaignPatch) apply(c *Campaign) {
	set(&c.Title, p.Title)
	set(&c.Comment, p.Comment)
	set(&c.ProductID, p.ProductID)
	set(&c.LimitPerUser, p.Limit)
	set(&c.LatePayment, p.LatePayment)
	set(&c.LowStock, p.LowStock)
	if p.StartsAt != nil {
		c.StartsAt = ms(*p.StartsAt)
	}
	if p.EndsAt != nil {
		c.EndsAt = ms(*p.EndsAt)
	}
	if p.Price != nil {
		c.Price = p.Price
	}
	if p.Tiers != nil {
		c.Tiers = p.Tiers
	}
	if p.PayWithin != nil {
		c.PayWithin = p.PayWithin.std()
	}
	if p.Gate != nil {
		c.Gate = p.Gate.orNil()
	}
	if p.ValidFor != nil {
		c.ValidFor, c.ValidUntil = p.ValidFor.std(), time.Time{}
	}
	if p.ValidUntil != nil {
		c.ValidUntil = ms(*p.ValidUntil)
	}
}

// set copies a value that is given.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Publish opens a draft for claims and warms the engine. Publishing again
// changes nothing.
func (s *Service) Publish(ctx context.Context, id string) (*Campaign, error) {
	return s.changeCampaign(ctx, id, func(c *Campaign) error {
		if c.State == Published {
			return nil
		}
		if c.State != Draft {
			return wrongState(c, "publish", "发布")
		}
		if !s.cfg.Now().Before(c.EndsAt) {
			return Fail(InvalidState, Text{"ends_at has passed", "ends_at 已过"})
		}
		if c.Stock.Total == 0 {
			return Fail(InvalidState, Text{"the campaign has nothing to give: import its codes, or restock it", "活动没有库存：请先导入券码或补货"})
		}
		if err := s.takeProductPrice(ctx, c); err != nil {
			return err
		}
		c.State = Published
		return nil
	})
}

// takeProductPrice fixes the price at publishing.
func (s *Service) takeProductPrice(ctx context.Context, c *Campaign) error {
	if c.Price != nil || c.ProductID == "" || c.Kind == RedPacket {
		return nil
	}
	p, err := s.ledger.Product(ctx, c.ProductID)
	if err != nil {
		return fmt.Errorf("dibs: reading the product of campaign %s: %w", c.ID, err)
	}
	if c.Price = p.Price; c.Price == nil && len(c.Tiers) > 0 {
		return Invalid(Fault{"/tiers", needPrice})
	}
	if fs := c.faults(); len(fs) > 0 {
		return Invalid(fs...)
	}
	return nil
}

// Pause makes claims be refused with Paused until Resume. When it returns, no
// later claim is granted.
func (s *Service) Pause(ctx context.Context, id string) (*Campaign, error) {
	return s.moveState(ctx, id, PausedState, "pause", "暂停", Published)
}

// Resume opens a paused campaign again.
func (s *Service) Resume(ctx context.Context, id string) (*Campaign, error) {
	return s.moveState(ctx, id, Published, "resume", "恢复", PausedState)
}

// End ends a campaign for good. When it returns, no later claim is granted.
func (s *Service) End(ctx context.Context, id string) (*Campaign, error) {
	return s.moveState(ctx, id, EndedState, "end", "结束", Published, PausedState)
}

func (s *Service) moveState(ctx context.Context, id string, to State, doing, doingZH string, from ...State) (*Campaign, error) {
	return s.changeCampaign(ctx, id, func(c *Campaign) error {
		if c.State == to {
			return nil
		}
		for _, f := range from {
			if c.State == f {
				c.State = to
				return nil
			}
		}
		return wrongState(c, doing, doingZH)
	})
}

func wrongState(c *Campaign, doing, doingZH string) error {
	return Fail(InvalidState, Textf("cannot %[1]s a campaign that is %[3]s", "状态为 %[3]s 的活动不能%[2]s", doing, doingZH, c.State))
}

// maxConflicts is how often a change is tried again on a row that moved.
const maxConflicts = 5

// changeCampaign applies a change to a copy of the campaign, stores it by
// compare-and-set, and then makes the engine follow.
func (s *Service) changeCampaign(ctx context.Context, id string, change func(*Campaign) error) (*Campaign, error) {
	c, unlock, err := s.lockCampaign(ctx, id)
	if err == nil {
		defer unlock()
	}
	for range maxConflicts {
		if errors.Is(err, ErrNotFound) {
			return nil, noSuchCampaign
		}
		if err != nil {
			return nil, err
		}
		before := *c
		if err := change(c); err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(*c, before) {
			c.UpdatedAt = ms(s.cfg.Now())
			err = s.storeChange(ctx, c, &before)
		}
		if errors.Is(err, ErrConflict) {
			c, err = s.ledger.Campaign(ctx, id)
			continue
		}
		if err != nil {
			return nil, asUnavailable(err, EffectUnknown)
		}
		return c, unsure(s.follow(ctx, c))
	}
	return nil, Unavail(EffectNone, ErrConflict)
}

// storeChange stores a changed campaign. A red packet is paid for in the
// transaction that publishes it.
func (s *Service) storeChange(ctx context.Context, c, before *Campaign) error {
	if c.Kind == RedPacket && before.State == Draft && c.State == Published {
		return s.ledger.FundCampaign(ctx, c)
	}
	return s.ledger.UpdateCampaign(ctx, c)
}

// follow makes the engine hold and obey a campaign as the ledger has it.
func (s *Service) follow(ctx context.Context, c *Campaign) error {
	defer s.catalog.Add(1)
	if s.sells(c) {
		if err := s.admit(ctx, c); err != nil {
			return err
		}
	}
	if v, ok := s.lives.Load(c.ID); ok {
		v.(*live).renew(c)
	} else if c.State == Draft || !s.engine.Shared() || s.over(c) {
		return nil
	}
	// Somebody may be loading it by the definition before.
	for until := time.Now().Add(joinPatience); ; {
		err := s.engine.Configure(ctx, c)
		if errors.Is(err, ErrNotOpen) && s.engine.Shared() && time.Now().Before(until) && sleep(ctx, joinEvery) {
			continue
		}
		if errors.Is(err, ErrNotOpen) && !s.sells(c) {
			return nil
		}
		if err != nil {
			return asUnavailable(err, EffectUnknown)
		}
		return nil
	}
}
