package dibs

import (
	"context"
	"errors"
	"time"
)

var noSuchProduct = Fail(NotFound, Text{"there is no such product", "该产品不存在"})

// CreateProduct stores a new product. *Error of InvalidRequest or
// AlreadyExists.
func (s *Service) CreateProduct(ctx context.Context, spec ProductSpec) (*Product, error) {
	p, err := spec.Product(s.cfg.Now())
	if err != nil {
		return nil, err
	}
	if err := s.ledger.InsertProduct(ctx, p); err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	return p, nil
}

// Product returns a product. ErrNotFound.
func (s *Service) Product(ctx context.Context, id string) (*Product, error) {
	p, err := s.ledger.Product(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, noSuchProduct
	}
	return p, err
}

// Products lists products by id.
func (s *Service) Products(ctx context.Context, page Page) (List[Product], error) {
	return s.ledger.Products(ctx, page)
}

// PatchProduct changes a product. Campaigns that are published keep the price
// they were published with.
func (s *Service) PatchProduct(ctx context.Context, id string, patch ProductPatch) (*Product, error) {
	for range maxConflicts {
		p, err := s.Product(ctx, id)
		if err != nil {
			return nil, err
		}
		set(&p.Name, patch.Name)
		set(&p.Thumbnail, patch.Thumbnail)
		set(&p.Description, patch.Description)
		set(&p.Comment, patch.Comment)
		set(&p.Stock, patch.Stock)
		set(&p.LatePayment, patch.LatePayment)
		if patch.PayWithin != nil {
			p.PayWithin = patch.PayWithin.std()
		}
		if patch.Price != nil {
			p.Price = patch.Price
		}
		if fs := p.faults(); len(fs) > 0 {
			return nil, Invalid(fs...)
		}
		p.UpdatedAt = ms(s.cfg.Now())
		err = s.ledger.UpdateProduct(ctx, p)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return nil, asUnavailable(err, EffectUnknown)
		}
		if patch.Name == nil && patch.Thumbnail == nil && patch.Description == nil && patch.Price == nil && patch.PayWithin == nil {
			return p, nil
		}
		return p, s.touchCampaigns(ctx, p)
	}
	return nil, Unavail(EffectNone, ErrConflict)
}

// touchCampaigns raises the versions of the campaigns that show a product, so
// that every node shows it as it is now. Drafts are shown to nobody who keeps
// them.
func (s *Service) touchCampaigns(ctx context.Context, p *Product) error {
	campaigns, err := s.ledger.LiveCampaigns(ctx, s.cfg.Now())
	if err != nil {
		return asUnavailable(err, EffectUnknown)
	}
	for _, c := range campaigns {
		if c.ProductID != p.ID {
			continue
		}
		if _, err := s.changeCampaign(ctx, c.ID, func(c *Campaign) error {
			// Two changes in one millisecond are two changes.
			c.UpdatedAt = time.Time{}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
