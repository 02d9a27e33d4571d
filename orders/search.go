package orders

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// List lists claims of all campaigns, newest first; those of a campaign or a
// product campaign by campaign, the newest one first. Claims granted to a user
// or of a campaign before the call are in it; others appear when they are settled,
// some tenths of a second later.
func (s *Orders) List(ctx context.Context, q dibs.OrderQuery, page dibs.Page) (dibs.List[dibs.Claim], error) {
	if fs := q.Faults(); len(fs) > 0 {
		return dibs.List[dibs.Claim]{}, dibs.Invalid(fs...)
	}
	f := Filter{
		UserID: q.UserID, Status: q.Status, OrderType: q.OrderType, PaymentRef: q.PaymentRef, RefundDue: q.RefundDue, Reference: q.Reference, Code: q.Code,
		Since: dibs.Ms(q.Since), Until: q.Until,
	}
	if q.Since.IsZero() {
		f.Since = time.Time{}
	}
	var err error
	if f.Campaigns, err = s.campaignsFor(ctx, &q); err != nil {
		return dibs.List[dibs.Claim]{}, err
	}
	if page.Cursor == "" {
		if err := s.settleFor(ctx, &q); err != nil {
			return dibs.List[dibs.Claim]{}, err
		}
	}
	list, err := s.ledger.OrderList(ctx, f, page)
	if err != nil {
		return list, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return list, s.claims.FillAll(ctx, list.Items)
}

// campaignsFor returns the campaigns that a query names, nil for all.
func (s *Orders) campaignsFor(ctx context.Context, q *dibs.OrderQuery) ([]uint32, error) {
	var numbers []uint32
	if q.ProductID != "" {
		var err error
		if numbers, err = s.ledger.CampaignsOf(ctx, q.ProductID); err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectNone)
		}
	}
	if q.CampaignID == "" {
		return numbers, nil
	}
	c, err := s.registry.Get(ctx, q.CampaignID)
	if errors.Is(err, dibs.ErrNotFound) {
		return []uint32{}, nil
	}
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	if q.ProductID != "" && !slices.Contains(numbers, c.Number) {
		return []uint32{}, nil
	}
	return []uint32{c.Number}, nil
}

// settleFor settles what a query may be about and the ledger does not have yet.
func (s *Orders) settleFor(ctx context.Context, q *dibs.OrderQuery) error {
	if q.UserID != "" {
		fresh, err := s.claims.UnsettledOf(ctx, q.UserID)
		if err != nil {
			return err
		}
		return s.claims.SettleGrants(ctx, fresh)
	}
	if q.CampaignID == "" {
		return nil
	}
	c, err := s.registry.Get(ctx, q.CampaignID)
	if errors.Is(err, dibs.ErrNotFound) {
		return nil
	}
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return s.settler.SettleAll(ctx, c)
}

// Filter says which orders to look for. Zero fields do not filter.
type Filter struct {
	UserID     string
	Status     *dibs.Status
	OrderType  dibs.OrderType
	PaymentRef string
	// RefundDue: only those whose payment is due.
	RefundDue bool
	// Campaigns are numbers, the highest first; nil for all campaigns.
	Campaigns []uint32
	// Code is an item of one of the Campaigns.
	Code string
	// Reference is the caller's own of the claims.
	Reference string
	// Since ≤ created_at < Until.
	Since, Until time.Time
}
