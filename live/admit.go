package live

import (
	"context"
	"fmt"
	"sync"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// admission is one campaign's way into this node.
type admission struct {
	mu   wait.Lock
	rest rest
}

// Admit makes a campaign live on this node, once for all who ask at the same
// time. After a failure others are refused for a while without another attempt.
func (s *Loader) Admit(ctx context.Context, c *dibs.Campaign) error {
	return s.admitAs(ctx, c, &Campaign{})
}

// Recall brings a campaign that may be over back into the engine, for a late
// payment. It leaves again as others do that are over.
func (s *Loader) Recall(ctx context.Context, c *dibs.Campaign) error {
	return s.admitAs(ctx, c, &Campaign{recalled: true})
}

func (s *Loader) admitAs(ctx context.Context, c *dibs.Campaign, l *Campaign) error {
	v, _ := s.admissions.LoadOrStore(c.ID, &admission{mu: wait.NewLock()})
	a := v.(*admission)
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.registry.Live(c.ID) != nil {
		return nil
	}
	if !a.rest.over() {
		return dibs.Unavail(dibs.EffectNone, dibs.ErrNotOpen)
	}
	err := s.goLive(ctx, c, l, &a.rest)
	if again := a.rest.after(err); err != nil {
		if ctx.Err() == nil {
			s.log.Error("a published campaign could not be loaded into the engine", "campaign", c.ID, "err", err, "again_in", again)
		}
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	s.admissions.Delete(c.ID)
	return nil
}

// AdmitFor is admit for somebody who may go away: the load, which others wait
// for and which has cost an epoch, goes on without him.
func (s *Loader) AdmitFor(ctx context.Context, c *dibs.Campaign) error {
	ctx, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Admit(s.life, c) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return dibs.Unavail(dibs.EffectNone, ctx.Err())
	}
}

// LiveOf returns a campaign as it is live on this node; nil when the engine
// has no business with it.
func (s *Loader) LiveOf(ctx context.Context, c *dibs.Campaign) (*Campaign, error) {
	l := s.registry.Live(c.ID)
	if l == nil && s.engine.Shared() && s.registry.Sells(c) {
		if err := s.AdmitFor(ctx, c); err != nil {
			return nil, err
		}
		l = s.registry.Live(c.ID)
	}
	return l, nil
}

// admitAll makes campaigns live that are not yet, several at a time where that
// means to wait for other machines. The others are served when one cannot be
// loaded: its claims are refused as unavailable, and the service is not ready.
func (s *Loader) admitAll(ctx context.Context, campaigns []*dibs.Campaign) {
	atOnce := 1
	if s.engine.Shared() {
		atOnce = admissionsAtOnce
	}
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, c := range campaigns {
		if s.registry.Live(c.ID) != nil || !s.registry.Sells(c) || ctx.Err() != nil {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			// admit logs its errors, and shows them as the service's health.
			_ = s.Admit(ctx, c)
		})
	}
	all.Wait()
}

// TryAgain ends the pause after a failed admission of a campaign.
func (s *Loader) TryAgain(c *dibs.Campaign) {
	if v, ok := s.admissions.Load(c.ID); ok {
		v.(*admission).rest.end()
	}
}

// stranded returns why a published campaign could not be loaded; nil when all are.
func (s *Loader) stranded() (err error) {
	s.admissions.Range(func(id, v any) bool {
		if err = v.(*admission).rest.failing(); err != nil {
			err = fmt.Errorf("campaign %s: %w", id, err)
		}
		return err == nil
	})
	return err
}

// forgetAdmissions drops failed admissions of campaigns that are not published
// any more.
func (s *Loader) forgetAdmissions(campaigns []*dibs.Campaign) {
	wanted := make(map[string]bool, len(campaigns))
	for _, c := range campaigns {
		wanted[c.ID] = s.registry.Sells(c)
	}
	s.admissions.Range(func(id, _ any) bool {
		if !wanted[id.(string)] {
			s.admissions.Delete(id)
		}
		return true
	})
}

// goLive makes a campaign's shards claimable through this node.
func (s *Loader) goLive(ctx context.Context, c *dibs.Campaign, l *Campaign, pauses *rest) error {
	l.campaign.Store(c)
	l.lowSince.Store(c.LowSince.UnixMilli())
	for i := range c.Shards {
		t := newShard(dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}, l, s.now())
		t.rest = pauses
		if err := s.join(ctx, t); err != nil {
			return err
		}
		l.Shards = append(l.Shards, t)
	}
	s.registry.Put(c, l)
	s.halts.Delete(c.ID)
	wait.Kick(s.settler.settleKick)
	return nil
}

// haltedCount counts the campaigns that could not be loaded here, or not be
// settled any more.
func (s *Loader) haltedCount() int64 {
	halted := map[string]bool{}
	s.admissions.Range(func(id, v any) bool {
		if v.(*admission).rest.failing() != nil {
			halted[id.(string)] = true
		}
		return true
	})
	s.halts.Range(func(id, _ any) bool {
		halted[id.(string)] = true
		return true
	})
	s.registry.eachShard(func(t *Shard) bool {
		if t.rest.failing() != nil {
			halted[t.l.Def().ID] = true
		}
		return true
	})
	return int64(len(halted))
}
