package dibs

import (
	"context"
	"errors"
	"fmt"
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
func (o OlderLedger) fault() []Fault {
	switch o {
	case "", OlderLedgerContinue, OlderLedgerEnd:
		return nil
	}
	return []Fault{{Field: "/older_ledger", Problem: Text{EN: "must be continue or end", ZH: "必须为 continue 或 end"}}}
}

// lostPart is a part of a shard's journal that is gone and that the ledger does
// not have.
type lostPart struct {
	shard ShardID
	// from is where the ledger ends, to the last place of what is gone.
	from, to Cursor
}

func (p *lostPart) String() string {
	return fmt.Sprintf("the ledger of shard %s ends at %s, and what its journal had from there up to %s is gone", p.shard, p.from, p.to)
}

// lostParts finds, for each shard of a campaign, what follows the ledger's position
// and is gone. It asks for no shard to be open.
func (s *Service) lostParts(ctx context.Context, c *Campaign) ([]lostPart, error) {
	if c.Regular() || c.State == Draft {
		return nil, nil
	}
	var parts []lostPart
	for i := range c.Shards {
		p := lostPart{shard: ShardID{Campaign: c.Number, Shard: uint8(i)}}
		totals, err := s.ledger.Totals(ctx, p.shard)
		if err != nil {
			return nil, err
		}
		end, err := s.engine.JournalEnd(ctx, p.shard)
		if err != nil {
			return nil, err
		}
		p.from = totals.Position
		err = s.continues(ctx, p.shard, p.from, end)
		if !errors.Is(err, ErrGap) {
			// What cannot be read, or moves just now, is found by those who settle it.
			continue
		}
		if p.to, err = s.endOfLost(ctx, p.shard, p.from, end); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// endOfLost is the place up to which the journal has nothing behind a position.
func (s *Service) endOfLost(ctx context.Context, id ShardID, position, end Cursor) (Cursor, error) {
	next, err := s.engine.ReadJournal(ctx, id, position, 1)
	if err != nil || len(next) == 0 {
		return end, err
	}
	if e := &next[0]; e.Kind != EntryOpen {
		return Cursor{Epoch: e.Epoch, Seq: e.Seq - 1}, nil
	}
	// It moves nothing but the position.
	return next[0].Cursor, nil
}

// older says what is gone, or does about it what was chosen; false when the
// campaign stays halted.
func (m *mend) older(ctx context.Context, parts []lostPart) (bool, error) {
	if m.choice == "" {
		for i := range parts {
			m.cannot("%s: the ledger was restored from an older backup, and claims between are lost; restore a newer backup, or decide: "+
				"--older-ledger continue goes on and sells the lost claims' units again, --older-ledger end ends the campaign", &parts[i])
		}
		return false, nil
	}
	if m.choice == OlderLedgerEnd && m.c.State != EndedState {
		c, err := m.s.End(ctx, m.c.ID)
		if err != nil {
			return false, err
		}
		m.c = c
		m.did("ended the campaign, since its ledger is older than its journal")
	}
	for len(parts) > 0 {
		for _, p := range parts {
			if err := m.s.ledger.SkipTo(ctx, p.shard, p.from, p.to); err != nil {
				return false, err
			}
			m.did("gave up what shard %s granted after %s up to %s: who was told yes there holds nothing that dibs knows", p.shard, p.from, p.to)
		}
		// A journal may lack several parts.
		var err error
		if parts, err = m.s.lostParts(ctx, m.c); err != nil {
			return false, err
		}
	}
	return true, m.takeUp(ctx)
}

// takeUp has a campaign that was halted loaded again, or settled where it is over.
func (m *mend) takeUp(ctx context.Context) error {
	m.s.tryAgain(m.c)
	if m.s.sells(m.c) {
		m.s.dropLive(m.c)
		return m.s.admitFor(ctx, m.c)
	}
	for i := range m.c.Shards {
		if err := m.s.adoptTail(ctx, m.c, ShardID{Campaign: m.c.Number, Shard: uint8(i)}); err != nil {
			return err
		}
	}
	return nil
}
