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
	demoPaid   = "sneaker-drop"
)

// demoPictures is where the pictures of the demo products are, of whichever version the server is.
const demoPictures = "/assets/demo/img/"

// demoOpenFor is how long the demo campaigns are open.
const demoOpenFor = 8 * time.Hour

// demo makes the demo campaigns, by the services themselves: there is no call over HTTP. In a data
// folder that was used before it finds them
// instead: they keep what was granted, and their end is moved when less than an hour
// is left.
func demo(ctx context.Context, svc *node.Service) ([]api.CampaignView, error) {
	phone := dibs.ProductSpec{
		ID: "phone", Name: "Phone", Description: "The phone that everybody wants at noon.", Price: &dibs.Money{Amount: 99_900, Currency: "CNY"},
		Thumbnail: demoPictures + "phone.svg",
	}
	sneaker := dibs.ProductSpec{
		ID: "sneaker", Name: "Canvas sneaker", Description: "A small series, in orange. Two at most, the second at half price.",
		Price: &dibs.Money{Amount: 45_900, Currency: "CNY"}, Thumbnail: demoPictures + "sneaker.svg",
	}
	for _, p := range []dibs.ProductSpec{phone, sneaker} {
		if _, err := svc.Products.Create(ctx, p); err != nil && !errors.Is(err, dibs.ErrAlreadyExists) {
			return nil, fmt.Errorf("the demo product %s: %w", p.ID, err)
		}
	}
	var views []api.CampaignView
	for _, spec := range demoSpecs(phone.ID, sneaker.ID, time.Now()) {
		v, err := demoCampaign(ctx, svc, spec)
		if err != nil {
			return nil, fmt.Errorf("the demo campaign %s: %w", spec.ID, err)
		}
		views = append(views, v)
	}
	return views, nil
}

// demoSpecs returns the demo campaigns: one of each kind that is open, and a sale that is
// not. The one of the product paid has to be paid.
func demoSpecs(product, paid string, now time.Time) []dibs.CampaignSpec {
	units, seats, pairs, two, payWithin := int64(200), int64(500), int64(60), int64(2), dibs.Duration(2*time.Minute)
	// A second ago, so that the campaigns are open when the banner stands.
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
			ID: demoPaid, Kind: dibs.Sale, Title: "Sneaker drop: pay within two minutes", ProductID: &paid,
			StartsAt: today, EndsAt: now.Add(demoOpenFor), Stock: dibs.StockSpec{Units: &pairs},
			Price: &dibs.Money{Amount: 29_900, Currency: "CNY"}, Limit: &two, PayWithin: &payWithin,
			Tiers: []dibs.Tier{{FromUnit: 2, Percent: 50}},
		},
		{
			ID: demoLater, Kind: dibs.Sale, Title: "Tickets, tomorrow",
			StartsAt: tomorrow, EndsAt: tomorrow.Add(demoOpenFor), Stock: dibs.StockSpec{Units: &seats},
			Price: &dibs.Money{Amount: 28_000, Currency: "CNY"},
		},
	}
}

// demoCampaign makes one campaign and publishes it, unless it exists. A crash between two steps leaves
// a draft, which the next start publishes. An ended campaign stays ended.
func demoCampaign(ctx context.Context, svc *node.Service, spec dibs.CampaignSpec) (api.CampaignView, error) {
	c, err := svc.Campaigns.Create(ctx, spec)
	if errors.Is(err, dibs.ErrAlreadyExists) {
		c, err = svc.Live.Registry.Get(ctx, spec.ID)
	}
	// A data folder may be older than a day: without this, all curl lines would be refused.
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
