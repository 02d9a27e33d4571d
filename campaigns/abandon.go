package campaigns

import (
	"context"
	"errors"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// Abandonment confirms that a shard is given up. One of its fields is needed.
type Abandonment struct {
	Unsold *int64 `json:"unsold,omitempty" doc:"how many units of the shard are unsold by the ledger; another number is refused, and the refusal has the right one"`
	Yes    bool   `json:"yes,omitempty" doc:"give the shard up, however many are unsold"`
}

// unconfirmed is no number of units that a shard could have.
const unconfirmed = -1

// AbandonShard takes a shard off a deployment of the engine that is lost for good, or that
// was taken out. Another deployment gets the shard when it is needed next, with what the
// ledger has of it: what was granted on the lost one and not settled is lost. *Error of
// InvalidState while the shard's deployment answers, when no other one does, or when the
// abandonment does not confirm what is unsold.
func (s *Campaigns) AbandonShard(ctx context.Context, id string, shard int, a Abandonment) (*dibs.Campaign, error) {
	c, unlock, err := s.registry.Lock(ctx, id)
	if errors.Is(err, dibs.ErrNotFound) {
		return nil, dibs.NoSuchCampaign
	}
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	defer unlock()
	if shard < 0 || shard >= c.Shards {
		return nil, dibs.Fail(dibs.NotFound, dibs.Text{EN: "the campaign has no such shard", ZH: "活动没有这个分片"})
	}
	at := dibs.ShardID{Campaign: c.Number, Shard: uint8(shard)}
	if lost, err := s.isLost(ctx, c, at); err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	} else if !lost {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{
			EN: "the shard is not on a deployment of the engine that is away: it loses nothing where it is", ZH: "分片所在的引擎部署没有失联，无需放弃",
		})
	}
	if err := s.cfg.Engine.Ping(ctx); err != nil {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "no other deployment of the engine can take the shard", ZH: "没有其他可用的引擎部署可以接管分片"})
	}
	unsold := a.Unsold
	switch {
	case a.Yes:
		unsold = nil
	case unsold == nil:
		unsold = new(int64(unconfirmed))
	}
	from, err := s.cfg.Ledger.AbandonShard(ctx, at, unsold)
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	s.cfg.Logger.Warn("a shard was given up: it is loaded on another deployment, without what was not settled", "campaign", c.ID, "shard", shard, "deployment", from)
	return c, nil
}

// isLost reports whether a shard is on a deployment that is away, or on none of this node's.
// The latter is lost for a campaign that is over alone: one that sells is on a deployment
// that was added just now, and that other nodes have already.
func (s *Campaigns) isLost(ctx context.Context, c *dibs.Campaign, at dibs.ShardID) (bool, error) {
	if _, err := s.cfg.Engine.Stats(ctx, at); errors.Is(err, live.ErrAway) {
		return true, nil
	}
	if s.registry.Sells(c) || len(s.cfg.Deployments) == 0 {
		return false, nil
	}
	number, err := s.cfg.Ledger.DeploymentOf(ctx, at)
	return number != 0 && !slices.Contains(s.cfg.Deployments, number), err
}
