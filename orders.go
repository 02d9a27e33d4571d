package dibs

import (
	"context"
	"errors"
	"slices"
	"time"
)

// OrderQuery looks for orders. Zero fields do not filter.
type OrderQuery struct {
	UserID     string
	Status     *Status
	CampaignID string
	ProductID  string
	OrderType  OrderType
	PaymentRef string
	// Code is a code or a seat of the campaign, which has to be named.
	Code string
	// Since ≤ created_at < Until.
	Since, Until time.Time
}

func (q *OrderQuery) faults() []Fault {
	var fs []Fault
	for _, id := range []struct{ field, value string }{
		{"/user_id", q.UserID}, {"/campaign_id", q.CampaignID}, {"/product_id", q.ProductID},
	} {
		if id.value != "" && !isID(id.value) {
			fs = append(fs, Fault{id.field, badID})
		}
	}
	if q.OrderType != 0 && q.OrderType != RegularOrder && q.OrderType != FlashOrder {
		fs = append(fs, Fault{"/order_type", Text{"must be 1 or 2", "必须是 1 或 2"}})
	}
	fs = append(fs, refFault("/payment_ref", q.PaymentRef, false)...)
	if q.Code != "" && !isItem(q.Code) {
		fs = append(fs, Fault{"/code", badItem})
	} else if q.Code != "" && q.CampaignID == "" {
		fs = append(fs, Fault{"/code", Text{"needs campaign_id", "需要同时提供 campaign_id"}})
	}
	for _, at := range []struct {
		field string
		t     time.Time
	}{{"/since", q.Since}, {"/until", q.Until}} {
		if y := at.t.Year(); !at.t.IsZero() && (y < 1970 || y > 9999) {
			fs = append(fs, Fault{at.field, Text{"must be a time from 1970 to 9999", "必须是 1970 到 9999 年之间的时间"}})
		}
	}
	if len(fs) == 0 && !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		fs = append(fs, Fault{"/until", Text{"must be after since", "必须晚于 since"}})
	}
	return fs
}

// Orders lists claims of all campaigns, newest first; those of a campaign or a
// product campaign by campaign, the newest one first. What was granted to a user
// or of a campaign before the call is in it; others appear when they are settled,
// some tenths of a second later.
func (s *Service) Orders(ctx context.Context, q OrderQuery, page Page) (List[Claim], error) {
	if fs := q.faults(); len(fs) > 0 {
		return List[Claim]{}, Invalid(fs...)
	}
	f := OrderFilter{
		UserID: q.UserID, Status: q.Status, OrderType: q.OrderType, PaymentRef: q.PaymentRef, Code: q.Code,
		Since: ms(q.Since), Until: q.Until,
	}
	if q.Since.IsZero() {
		f.Since = time.Time{}
	}
	var err error
	if f.Campaigns, err = s.campaignsFor(ctx, &q); err != nil {
		return List[Claim]{}, err
	}
	if page.Cursor == "" {
		if err := s.settleFor(ctx, &q); err != nil {
			return List[Claim]{}, err
		}
	}
	list, err := s.ledger.OrderList(ctx, f, page)
	if err != nil {
		return list, asUnavailable(err, EffectNone)
	}
	return list, s.dressAll(ctx, list.Items)
}

// campaignsFor returns the campaigns that a query names, nil for all.
func (s *Service) campaignsFor(ctx context.Context, q *OrderQuery) ([]uint32, error) {
	var numbers []uint32
	if q.ProductID != "" {
		var err error
		if numbers, err = s.ledger.CampaignsOf(ctx, q.ProductID); err != nil {
			return nil, asUnavailable(err, EffectNone)
		}
	}
	if q.CampaignID == "" {
		return numbers, nil
	}
	c, err := s.Campaign(ctx, q.CampaignID)
	if errors.Is(err, ErrNotFound) {
		return []uint32{}, nil
	}
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	if q.ProductID != "" && !slices.Contains(numbers, c.Number) {
		return []uint32{}, nil
	}
	return []uint32{c.Number}, nil
}

// settleFor settles what a query may be about and the ledger does not have yet.
func (s *Service) settleFor(ctx context.Context, q *OrderQuery) error {
	if q.UserID != "" {
		fresh, err := s.unsettledOf(ctx, q.UserID)
		if err != nil {
			return err
		}
		return s.settleGrants(ctx, fresh)
	}
	if q.CampaignID == "" {
		return nil
	}
	c, err := s.Campaign(ctx, q.CampaignID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return asUnavailable(err, EffectNone)
	}
	return s.settleAll(ctx, c)
}

// dressAll dresses claims of any campaigns.
func (s *Service) dressAll(ctx context.Context, claims []Claim) error {
	for i := range claims {
		c, err := s.campaignOf(ctx, claims[i].Position.Campaign)
		if err != nil {
			return err
		}
		s.dress(c, &claims[i])
	}
	return nil
}
