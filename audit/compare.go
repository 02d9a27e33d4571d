package audit

import (
	"context"
	"errors"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

const (
	// maxCompared is how many claims of a shard are compared one by one: as many
	// of its newest journal entries, and as many of the campaign's oldest claims.
	maxCompared = 1000
	// maxNamed bounds the claims that a comparison names.
	maxNamed = 10
)

// comparison is what became of claims that were looked at one by one.
type comparison struct {
	// fromJournal and fromLedger count the claims that were looked for in the
	// ledger and in the engine.
	fromJournal, fromLedger int
	// lost are grants of the journal that the ledger does not have, or has with
	// another content. Nothing can tell here what happened to them.
	lost []dibs.Text
	// strange are claims of the ledger that the engine does not have, or has with
	// another content. A load puts that right.
	strange []dibs.Text
}

func (c *comparison) ok() bool { return len(c.lost)+len(c.strange) == 0 }

// text says what was compared, and what is at odds.
func (c *comparison) text() dibs.Text {
	return sentence("one by one, %d of the journal and %d of the ledger: at odds: %s", "逐条核对日志 %d 条、账本 %d 条，不一致：%s",
		c.fromJournal, c.fromLedger, listed(slices.Concat(c.lost, c.strange)))
}

func note(list *[]dibs.Text, en, zh string, args ...any) {
	if len(*list) < maxNamed {
		*list = append(*list, dibs.Textf(en, zh, args...))
	}
}

// compareClaims compares contents: what the journal says was granted with the
// ledger, and what the ledger has with the engine. It holds whatever goes on
// meanwhile, since grants come in this order and stay.
func (s *Audit) compareClaims(ctx context.Context, c *dibs.Campaign, found *comparison) error {
	l, err := s.loader.EnsureLive(ctx, c)
	if err != nil || l == nil {
		return err
	}
	s.quarantine.ReadQuarantine(ctx)
	for _, t := range l.Shards {
		if err := s.compareJournal(ctx, t, found); err != nil {
			return err
		}
	}
	return s.compareEngine(ctx, c, found)
}

// compareJournal looks for the shard's newest settled grants in the ledger.
func (s *Audit) compareJournal(ctx context.Context, t *live.Shard, found *comparison) error {
	// The position here may be behind the ledger's, never before it.
	position := t.At()
	after := dibs.Cursor{Epoch: position.Epoch, Seq: position.Seq - min(position.Seq, maxCompared)}
	entries, err := s.engine.ReadJournal(ctx, t.ID, after, maxCompared)
	if errors.Is(err, dibs.ErrCorrupt) {
		note(&found.lost, "the journal of shard %s cannot be read", "分片 %s 的日志无法读取", t.ID)
		return nil
	}
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	for i := range entries {
		e := &entries[i]
		at := dibs.Position{ShardID: t.ID, Cursor: e.Cursor}
		if e.Kind != dibs.EntryGrant || position.Before(e.Cursor) {
			continue
		}
		claim, err := s.ledger.Claim(ctx, at)
		if errors.Is(err, dibs.ErrNotFound) {
			aside, asideErr := s.quarantine.IsAside(ctx, at)
			if asideErr != nil {
				return dibs.AsUnavailable(asideErr, dibs.EffectNone)
			}
			if aside {
				continue
			}
		}
		found.fromJournal++
		switch {
		case errors.Is(err, dibs.ErrNotFound):
			note(&found.lost, "%s of user %s was granted and is not in the ledger", "%s（用户 %s）已发放，但不在账本中", s.ids.Encode(at), e.UserID)
		case err != nil:
			return dibs.AsUnavailable(err, dibs.EffectNone)
		case claim.UserID != e.UserID || claim.Quantity != e.Quantity:
			note(&found.lost, "%s was granted to user %s with %d, and in the ledger it is user %s's with %d",
				"%s 已发放给用户 %s %d 件，而账本中属于用户 %s，共 %d 件",
				s.ids.Encode(at), e.UserID, e.Quantity, claim.UserID, claim.Quantity)
		}
	}
	return nil
}

// compareEngine looks for the campaign's oldest claims in the engine.
func (s *Audit) compareEngine(ctx context.Context, c *dibs.Campaign, found *comparison) error {
	page := dibs.Page{Limit: dibs.MaxPage}
	for seen := 0; seen < maxCompared; seen += dibs.MaxPage {
		list, err := s.ledger.ClaimList(ctx, dibs.ClaimFilter{Campaign: c.Number}, page)
		if err != nil {
			return dibs.AsUnavailable(err, dibs.EffectNone)
		}
		for i := range list.Items {
			if err := s.compareClaim(ctx, &list.Items[i], found); err != nil {
				return err
			}
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return nil
		}
	}
	return nil
}

func (s *Audit) compareClaim(ctx context.Context, claim *dibs.Claim, found *comparison) error {
	g, ok, err := s.engine.Find(ctx, claim.Position)
	if err == nil && !ok {
		// It may be that the shard is just being loaded, or leaves the engine.
		if _, err := s.engine.Stats(ctx, claim.Position.ShardID); errors.Is(err, dibs.ErrNotOpen) {
			return nil
		}
		g, ok, err = s.engine.Find(ctx, claim.Position)
	}
	if errors.Is(err, dibs.ErrNotOpen) {
		// It is being loaded, or it is over and its engine was started again.
		return nil
	}
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	found.fromLedger++
	id := s.ids.Encode(claim.Position)
	switch {
	case !ok:
		note(&found.strange, "%s of user %s is not in the engine", "%s（用户 %s）不在引擎中", id, claim.UserID)
	case g.UserID != claim.UserID || g.Quantity != claim.Quantity:
		note(&found.strange, "%s is user %s's with %d in the ledger, and user %s's with %d in the engine",
			"%s 在账本中属于用户 %s，共 %d 件；在引擎中属于用户 %s，共 %d 件",
			id, claim.UserID, claim.Quantity, g.UserID, g.Quantity)
	case !g.Released && claim.Status != dibs.Released && !claim.Restocked && !sameItems(g.Items, claim.Items):
		note(&found.strange, "%s has other items in the engine than in the ledger", "%s 在引擎中的物品与账本不同", id)
	}
	return nil
}

// sameItems compares items in any order.
func sameItems(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
