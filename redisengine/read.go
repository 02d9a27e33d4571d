package redisengine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
)

// read runs a script that changes nothing.
func (l *lane) read(ctx context.Context, s *script, keys []string, args ...string) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, l.e.cfg.Patience)
	defer cancel()
	res, err := l.run(ctx, s, keys, args...)
	if err != nil {
		return res, fault(ctx, dibs.EffectNone, err)
	}
	return res, refusal(&res)
}

// Find returns a grant by its position; see dibs.Engine.
func (e *Engine) Find(ctx context.Context, p dibs.Position) (dibs.Grant, bool, error) {
	l, err := e.anyLane(p.ShardID)
	if err != nil {
		return dibs.Grant{}, false, err
	}
	k := &l.keys
	res, err := l.read(ctx, findScript, []string{k.meta, k.holdings, k.places, k.issued}, itoa(p.Epoch), itoa(p.Seq))
	switch {
	case errors.Is(err, dibs.ErrNotFound) || res.word == "absent":
		return dibs.Grant{}, false, nil
	case err != nil:
		return dibs.Grant{}, false, err
	case len(res.rest) < 4:
		return dibs.Grant{}, false, dibs.Unavail(dibs.EffectNone, errShape)
	}
	payIn, err := strconv.ParseInt(res.rest[0].text, 10, 64)
	if err != nil {
		return dibs.Grant{}, false, dibs.Unavail(dibs.EffectNone, err)
	}
	user, rest, err := cutName(res.rest[1].text)
	if err != nil || rest != "" {
		return dibs.Grant{}, false, dibs.Unavail(dibs.EffectNone, errors.Join(errShape, err))
	}
	g, err := grantOf(p.ShardID, user, res.rest[2].text+res.rest[3].text, payIn)
	if err != nil {
		return dibs.Grant{}, false, dibs.Unavail(dibs.EffectNone, err)
	}
	return g, true, nil
}

// HoldingsOf returns a user's grants, newest first within a shard, on the
// shards that are open in Redis and not settled to their end; see dibs.Engine.
func (e *Engine) HoldingsOf(ctx context.Context, user string) ([]dibs.Grant, error) {
	shards, err := e.unsettled(ctx)
	if err != nil {
		return nil, err
	}
	of := make([][]dibs.Grant, len(shards))
	asks, ctx := errgroup.WithContext(ctx)
	asks.SetLimit(asksAtOnce)
	for i, id := range shards {
		asks.Go(func() (err error) {
			if of[i], err = e.holdingsOn(ctx, id, user); errors.Is(err, dibs.ErrNotOpen) {
				return nil
			}
			slices.Reverse(of[i])
			return err
		})
	}
	if err := asks.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(of...), nil
}

func (e *Engine) holdingsOn(ctx context.Context, id dibs.ShardID, user string) ([]dibs.Grant, error) {
	l, err := e.anyLane(id)
	if err != nil {
		return nil, err
	}
	k := &l.keys
	res, err := l.read(ctx, holdingsScript, []string{k.meta, k.holdings, k.places, k.issued}, itoa(hashOf(user)), string(appendName(nil, user)))
	if err != nil {
		return nil, err
	}
	if len(res.rest)%2 != 1 {
		return nil, dibs.Unavail(dibs.EffectNone, errShape)
	}
	payIn, err := strconv.ParseInt(res.rest[0].text, 10, 64)
	if err != nil {
		return nil, dibs.Unavail(dibs.EffectNone, err)
	}
	var grants []dibs.Grant
	for at := 1; at < len(res.rest); at += 2 {
		g, err := grantOf(id, user, res.rest[at].text+res.rest[at+1].text, payIn)
		if err != nil {
			return nil, dibs.Unavail(dibs.EffectNone, err)
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// Stats counts a shard; see dibs.Engine. Nothing is ever queued for a commit:
// Redis answers when an entry is as durable as its settings say.
func (e *Engine) Stats(ctx context.Context, id dibs.ShardID) (dibs.ShardStats, error) {
	l, err := e.anyLane(id)
	if err != nil {
		return dibs.ShardStats{}, err
	}
	res, err := l.read(ctx, statsScript, []string{l.keys.meta})
	if err != nil {
		return dibs.ShardStats{}, err
	}
	if len(res.rest) < 7 {
		return dibs.ShardStats{}, dibs.Unavail(dibs.EffectNone, errShape)
	}
	s := dibs.ShardStats{
		Head:    res.at,
		Now:     res.nowMS,
		Settled: dibs.Cursor{Epoch: uint16(res.rest[5].number), Seq: uint32(res.rest[6].number)},
		Waiting: l.waiting(),
	}
	for i, field := range map[int]*int64{0: &s.Remaining, 1: &s.Granted, 2: &s.HeadAt, 4: &s.Version} {
		if *field, err = strconv.ParseInt(res.rest[i].text, 10, 64); err != nil {
			return dibs.ShardStats{}, dibs.Unavail(dibs.EffectNone, err)
		}
	}
	return s, nil
}
