package node

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/moving"
)

// Metrics is a snapshot of what this node did since it started and how its
// campaigns stand.
type Metrics struct {
	claims.ClaimMetrics
	live.NodeMetrics
	// Expired counts unpaid claims that this node released.
	Expired int64
	// Credited counts shares of red packets that this node credited.
	Credited int64
	// Stuck is how many red packets do not get on.
	Stuck int64
	// EngineStats is what the engine did; zero where it does not count.
	EngineStats dibs.EngineStats
	// Level is the level that was asked for, and LevelSettings are what was found last
	// of each setting that it depends on.
	Level         string
	LevelSettings []dibs.Finding
	// Sinks are all takers of the events, as they were some seconds ago, and so are
	// the webhooks that were disabled, and that fail.
	Sinks                             []events.SinkView
	WebhooksDisabled, WebhooksFailing int64
	// Pushes are the announcements.
	Pushes announce.PushMetrics
	// Moving is what was moved between the shards of campaigns.
	Moving moving.Metrics
}

// Observe returns a snapshot of the service's numbers.
func (s *Service) Observe() Metrics {
	m := Metrics{
		ClaimMetrics: s.Claims.Metrics(), NodeMetrics: s.Live.Metrics(), Expired: s.Orders.Expired(), Credited: s.Funds.Credited(),
		Stuck: int64(s.Funds.Stuck()), Sinks: s.Events.SinksSeen(), Pushes: s.Announcements.Metrics(), Moving: s.Moving.Metrics(),
	}
	m.WebhooksDisabled, m.WebhooksFailing = s.Webhooks.Seen()
	if stats := s.engine.Abilities().Stats; stats != nil {
		m.EngineStats = stats()
	}
	m.Level, m.LevelSettings = s.level()
	return m
}

// Stats returns a campaign's numbers as they are now, grants counted that are
// not settled yet. The refusals are this node's.
func (s *Service) Stats(ctx context.Context, id string) (api.StatsView, error) {
	c, err := s.Live.Registry.Get(ctx, id)
	if err != nil {
		return api.StatsView{}, err
	}
	v, err := s.Live.Stats(ctx, c)
	if err == nil {
		v.Funds, err = s.Funds.FundsView(ctx, c)
	}
	v.LowStock, v.Low = c.LowStock, c.Low(v.Remaining)
	return v, err
}

// CampaignView returns the campaign as shown, with what remains and its
// product; admin adds the inner fields.
func (s *Service) CampaignView(ctx context.Context, c *dibs.Campaign, admin bool) (api.CampaignView, error) {
	var product *dibs.Product
	if c.ProductID != "" {
		p, err := s.Products.Get(ctx, c.ProductID)
		if err != nil && !errors.Is(err, dibs.ErrNotFound) {
			return api.CampaignView{}, dibs.AsUnavailable(err, dibs.EffectNone)
		}
		product = p
	}
	remaining, err := s.Live.Remaining(ctx, c)
	if err != nil {
		return api.CampaignView{}, err
	}
	v := api.CampaignViewOf(c, remaining, product, admin)
	if admin {
		v.Funds, err = s.Funds.FundsView(ctx, c)
	}
	return v, err
}
