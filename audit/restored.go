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
	// OlderLedgerContinue goes on from the ledger as it is. What the lost claims
	// held is sold again.
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
func (m *mend) older(ctx context.Context, parts []live.LostPart) (bool, error) {
	if m.choice == "" {
		for i := range parts {
			m.cannot("%s: the ledger was restored from an older backup, and claims between are lost; restore a newer backup, or decide: "+
				"--older-ledger continue goes on and sells the lost claims' units again, --older-ledger end ends the campaign", &parts[i])
		}
		return false, nil
	}
	if m.choice == OlderLedgerEnd && m.c.State != dibs.EndedState {
		c, err := m.s.campaigns.End(ctx, m.c.ID)
		if err != nil {
			return false, err
		}
		m.c = c
		m.did("ended the campaign, since its ledger is older than its journal")
	}
	for len(parts) > 0 {
		for _, p := range parts {
			if err := m.s.ledger.SkipTo(ctx, p.Shard, p.From, p.To); err != nil {
				return false, err
			}
			m.did("gave up what shard %s granted after %s up to %s: who was told yes there holds nothing that dibs knows", p.Shard, p.From, p.To)
		}
		// A journal may lack several parts.
		var err error
		if parts, err = m.s.loader.LostParts(ctx, m.c); err != nil {
			return false, err
		}
	}
	return true, m.takeUp(ctx)
}

// takeUp has a campaign that was halted loaded again, or settled where it is over.
func (m *mend) takeUp(ctx context.Context) error {
	m.s.loader.TryAgain(m.c)
	if m.s.registry.Sells(m.c) {
		m.s.registry.Drop(m.c)
		return m.s.loader.AdmitFor(ctx, m.c)
	}
	for i := range m.c.Shards {
		if err := m.s.loader.AdoptTail(ctx, m.c, dibs.ShardID{Campaign: m.c.Number, Shard: uint8(i)}); err != nil {
			return err
		}
	}
	return nil
}
