package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/node"
)

// The demo campaigns.
const (
	demoSale   = "phone-noon"
	demoCoupon = "coupon-rain"
	demoPacket = "redpacket-rain"
	demoLater  = "ticket-tomorrow"
)

// demoOpenFor is how long the demo campaigns are open.
const demoOpenFor = 8 * time.Hour

// demo makes the demo campaigns. In a data folder that was used before it finds them
// instead: they keep what was granted, and their end is moved when less than an hour
// is left.
func demo(ctx context.Context, svc *node.Service) ([]api.CampaignView, error) {
	phone := dibs.ProductSpec{
		ID: "phone", Name: "Phone", Description: "The phone that everybody wants at noon.", Price: &dibs.Money{Amount: 99_900, Currency: "CNY"},
	}
	if _, err := svc.Products.Create(ctx, phone); err != nil && !errors.Is(err, dibs.ErrAlreadyExists) {
		return nil, fmt.Errorf("the demo product: %w", err)
	}
	var views []api.CampaignView
	for _, spec := range demoSpecs(phone.ID, time.Now()) {
		v, err := demoCampaign(ctx, svc, spec)
		if err != nil {
			return nil, fmt.Errorf("the demo campaign %s: %w", spec.ID, err)
		}
		views = append(views, v)
	}
	return views, nil
}

// demoSpecs returns the demo campaigns: one of each kind that is open, and a sale that is
// not.
func demoSpecs(product string, now time.Time) []dibs.CampaignSpec {
	units, seats := int64(200), int64(500)
	today, tomorrow := now.Add(-time.Second), now.Add(24*time.Hour)
	return []dibs.CampaignSpec{
		{
			ID: demoSale, Kind: dibs.Sale, Title: "Phone at noon", ProductID: &product,
			StartsAt: today, EndsAt: now.Add(demoOpenFor), Stock: dibs.StockSpec{Units: &units},
		},
		{
			ID: demoCoupon, Kind: dibs.Coupon, Title: "Coupon rain",
			StartsAt: today, EndsAt: now.Add(demoOpenFor),
			Stock: dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 5000, Pattern: "RAIN-XXXX-XXXX"}},
		},
		{
			ID: demoPacket, Kind: dibs.RedPacket, Title: "Red packet rain",
			StartsAt: today, EndsAt: now.Add(demoOpenFor),
			Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 100_000, Currency: "CNY"}, Count: 100}},
		},
		{
			ID: demoLater, Kind: dibs.Sale, Title: "Tickets, tomorrow",
			StartsAt: tomorrow, EndsAt: tomorrow.Add(demoOpenFor), Stock: dibs.StockSpec{Units: &seats},
			Price: &dibs.Money{Amount: 28_000, Currency: "CNY"},
		},
	}
}

// demoCampaign makes one campaign and publishes it, unless it exists.
func demoCampaign(ctx context.Context, svc *node.Service, spec dibs.CampaignSpec) (api.CampaignView, error) {
	c, err := svc.Campaigns.Create(ctx, spec)
	if errors.Is(err, dibs.ErrAlreadyExists) {
		c, err = svc.Live.Registry.Get(ctx, spec.ID)
	}
	if err == nil && c.State != dibs.EndedState && time.Until(c.EndsAt) < time.Hour {
		c, err = svc.Campaigns.Patch(ctx, c.ID, dibs.CampaignPatch{EndsAt: &spec.EndsAt})
	}
	if err == nil && c.State == dibs.Draft {
		c, err = svc.Campaigns.Publish(ctx, c.ID)
	}
	if err != nil {
		return api.CampaignView{}, err
	}
	return svc.CampaignView(ctx, c, true)
}
