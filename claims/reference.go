package claims

import (
	"context"

	"github.com/dibs-dev/dibs"
)

// A reference goes with the claim's entry of the journal, in the step that grants the
// claim, and settling moves it into the ledger with the claim: there is none of one
// without the other, whatever dies between. The engine's own table of claims does not
// have it, so a claim that is not settled yet is read from its entry.

// refer completes the answer to a request that gave a reference. The first result of a
// repeat has the reference of the first request; another one is KeyReused, also where the
// first request had none. Where that cannot be known now, the repeat is answered without
// it: it is a yes.
func (s *Claims) refer(ctx context.Context, c *dibs.Campaign, text string, r dibs.Result) dibs.Result {
	if !r.Replayed {
		r.Claim.Reference = text
		return r
	}
	if known := s.firstReference(ctx, r.Claim); known && r.Claim.Reference != text {
		return dibs.Result{Outcome: dibs.KeyReused, Campaign: c}
	}
	return r
}

// firstReference fills in the reference of one claim, and reports whether it is known
// then: a claim that is in neither the journal nor the ledger may have one all the same.
func (s *Claims) firstReference(ctx context.Context, c *dibs.Claim) (known bool) {
	if c.Reference != "" || s.addJournalled(ctx, c) {
		return true
	}
	// Before the ledger is asked: a claim that is settled after that may be missed.
	t := s.registry.Shard(c.Position.ShardID)
	settled := t != nil && !t.At().Before(c.Position.Cursor)
	return s.addReferences(ctx, c) == nil && (settled || c.Reference != "")
}

// addReferences fills in the references of claims that do not come from the ledger. The
// error is the ledger's; then they have none but what the journal had.
func (s *Claims) addReferences(ctx context.Context, claims ...*dibs.Claim) error {
	var at []dibs.Position
	for _, c := range claims {
		if !s.addJournalled(ctx, c) {
			at = append(at, c.Position)
		}
	}
	if len(at) == 0 {
		return nil
	}
	found, err := s.cfg.Ledger.References(ctx, at)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if text, ok := found[c.Position]; ok {
			c.Reference = text
		}
	}
	return nil
}

// addJournalled fills in the reference of a claim that is not settled, as far as this
// node knows. False when the ledger is to be asked: the claim is settled, or its entry
// cannot be read, or was trimmed after another node had settled it.
func (s *Claims) addJournalled(ctx context.Context, c *dibs.Claim) bool {
	t := s.registry.Shard(c.Position.ShardID)
	if t == nil || !t.At().Before(c.Position.Cursor) {
		return false
	}
	before := c.Position.Cursor
	before.Seq--
	entries, err := s.cfg.Engine.ReadJournal(ctx, c.Position.ShardID, before, 1)
	if err != nil || len(entries) != 1 || entries[0].Cursor != c.Position.Cursor {
		return false
	}
	c.Reference = entries[0].Reference
	return true
}
