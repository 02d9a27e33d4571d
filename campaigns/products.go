package campaigns

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

// Products keeps products.
type Products struct {
	campaigns *Campaigns
	ledger    Ledger
	now       func() time.Time
}

// Create stores a new product. *Error of InvalidRequest or
// AlreadyExists.
func (s *Products) Create(ctx context.Context, spec dibs.ProductSpec) (*dibs.Product, error) {
	p, err := spec.Product(s.now())
	if err != nil {
		return nil, err
	}
	return p, dibs.AsUnavailable(s.ledger.InsertProduct(ctx, p), dibs.EffectUnknown)
}

// Get returns a product. ErrNotFound.
func (s *Products) Get(ctx context.Context, id string) (*dibs.Product, error) {
	p, err := s.ledger.Product(ctx, id)
	if errors.Is(err, dibs.ErrNotFound) {
		return nil, dibs.NoSuchProduct
	}
	return p, err
}

// List lists products by id.
func (s *Products) List(ctx context.Context, page dibs.Page) (dibs.List[dibs.Product], error) {
	return s.ledger.Products(ctx, page)
}

// Patch changes a product. Campaigns that are published keep the price
// they were published with.
func (s *Products) Patch(ctx context.Context, id string, patch dibs.ProductPatch) (*dibs.Product, error) {
	for range dibs.MaxConflicts {
		p, err := s.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if fs := patch.Faults(); len(fs) > 0 {
			return nil, dibs.Invalid(fs...)
		}
		patch.Apply(p)
		if fs := p.Faults(); len(fs) > 0 {
			return nil, dibs.Invalid(fs...)
		}
		p.UpdatedAt = dibs.Ms(s.now())
		err = s.ledger.UpdateProduct(ctx, p)
		if errors.Is(err, dibs.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
		if !patch.Shown() {
			return p, nil
		}
		return p, s.touchCampaigns(ctx, p)
	}
	return nil, dibs.Unavail(dibs.EffectNone, dibs.ErrConflict)
}

// touchCampaigns raises the versions of the campaigns that show a product, so
// that every node shows it as it is now. Drafts are shown to nobody who keeps
// them.
func (s *Products) touchCampaigns(ctx context.Context, p *dibs.Product) error {
	campaigns, err := s.ledger.LiveCampaigns(ctx, s.now())
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	for _, c := range campaigns {
		if c.ProductID != p.ID {
			continue
		}
		if _, err := s.campaigns.Change(ctx, c.ID, func(c *dibs.Campaign) error {
			// Two changes in one millisecond are two changes.
			c.UpdatedAt = time.Time{}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
