package dibs

import (
	"context"
	"errors"
)

// turn is a lock whose holder may be waiting for an engine or a ledger, for seconds,
// so that others can wait for it no longer than their context lasts. Use newTurn. It
// is a channel and no sync.Mutex also since in a bubble of testing/synctest time
// passes while a goroutine waits for a channel.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock takes the lock, however long that lasts.
func (t turn) Lock() { t <- struct{}{} }

// Unlock gives it back.
func (t turn) Unlock() { <-t }

// take takes the lock. *Error of Unavailable without an effect when ctx ends first.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return Unavail(EffectNone, errors.Join(errTurn, ctx.Err()))
	}
}

var errTurn = errors.New("dibs: another change of a campaign is not done yet")

// lockCampaign makes this call the only one of this node that changes campaigns,
// and reads one. Both together have the time of one call of the ledger: while the
// ledger hangs, nobody waits for those before them first. unlock ends it.
func (s *Service) lockCampaign(ctx context.Context, id string) (c *Campaign, unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.LedgerTimeout)
	defer cancel()
	if err := s.admin.take(ctx); err != nil {
		return nil, nil, err
	}
	if c, err = s.ledger.Campaign(ctx, id); err != nil {
		s.admin.Unlock()
		if ctx.Err() != nil {
			err = asUnavailable(err, EffectNone)
		}
		return nil, nil, err
	}
	return c, s.admin.Unlock, nil
}
