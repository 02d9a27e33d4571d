package audit

import (
	"context"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// OlderLedger is what to do about a campaign whose ledger was restored from a
// backup that is older than what the journal has kept: claims in between are
// known to nobody any more, and nothing is sold until somebody decides.
type OlderLedger string

// The choices. An empty one leaves the campaign halted.
const (
	// OlderLedgerContinue goes on from the ledger as it is. The units of the lost
	// claims are sold again.
	OlderLedgerContinue OlderLedger = "continue"
	// OlderLedgerEnd ends the campaign: nothing more of it is sold.
	OlderLedgerEnd OlderLedger = "end"
)

// OlderLedgers are all choices.
var OlderLedgers = []OlderLedger{OlderLedgerContinue, OlderLedgerEnd}

// fault names a choice that there is not.
func (o OlderLedger) fault() []dibs.Fault {
	switch o {
	case "", OlderLedgerContinue, OlderLedgerEnd:
		return nil
	}
	return []dibs.Fault{{Field: "/older_ledger", Problem: dibs.Text{EN: "must be continue or end", ZH: "必须为 continue 或 end"}}}
}

// older says what is gone, or does about it what was chosen; false when the
// campaign stays halted.
func (r *repairer) older(ctx context.Context, parts []live.LostPart) (bool, error) {
	if r.choice == "" {
		for i := range parts {
			r.cannot("%s: the ledger was restored from an older backup, and claims between are lost; restore a newer backup, or decide: "+
				"--older-ledger continue goes on and sells the lost claims' units again, --older-ledger end ends the campaign", &parts[i])
		}
		return false, nil
	}
	if r.choice == OlderLedgerEnd && r.c.State != dibs.EndedState {
		c, err := r.s.campaigns.End(ctx, r.c.ID)
		if err != nil {
			return false, err
		}
		r.c = c
		r.did("ended the campaign, since its ledger is older than its journal")
	}
	for len(parts) > 0 {
		for _, p := range parts {
			if err := r.s.ledger.SkipTo(ctx, p.Shard, live.ShardTotals{Epoch: p.Epoch, Position: p.From}, p.To); err != nil {
				return false, err
			}
			r.did("gave up what shard %s granted after %s up to %s: who was told yes there holds nothing that dibs knows", p.Shard, p.From, p.To)
		}
		// A journal may lack several parts.
		var err error
		if parts, err = r.s.loader.LostParts(ctx, r.c); err != nil {
			return false, err
		}
	}
	return true, r.reload(ctx)
}

// reload has a campaign that was halted loaded again, or settled where it is over.
func (r *repairer) reload(ctx context.Context) error {
	r.s.loader.TryAgain(r.c)
	if r.s.registry.Sells(r.c) {
		r.s.registry.Drop(r.c)
		return r.s.loader.AdmitFor(ctx, r.c)
	}
	var shards []dibs.ShardID
	for i := range r.c.Shards {
		shards = append(shards, dibs.ShardID{Campaign: r.c.Number, Shard: uint8(i)})
	}
	return r.s.loader.SettleTails(ctx, r.c, shards, true)
}
