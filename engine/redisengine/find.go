package redisengine

import (
	"context"
	"errors"
	"strconv"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// found is what the shard holds of a claim: its user, its record, its items, and the time to
// pay. absent says that the server does not hold the shard.
type found struct {
	user, record, items string
	payInMS             int64
	absent              bool
}

// look reads what the shard holds at a place. ErrNotFound.
func (s *shard) look(ctx context.Context, at dibs.Cursor) (f found, err error) {
	k := &s.keys
	res, err := s.read(ctx, conn.FindScript, []string{k.Meta, k.Holdings, k.Places, k.Issued}, format.Itoa(at.Epoch), format.Itoa(at.Seq))
	f.absent = res.Word == "absent"
	if err != nil {
		return f, err
	}
	if len(res.Rest) < 4 {
		return f, dibs.Unavail(dibs.EffectNone, conn.ErrShape)
	}
	f.record, f.items = res.Rest[2].Text, res.Rest[3].Text
	if f.payInMS, err = strconv.ParseInt(res.Rest[0].Text, 10, 64); err != nil {
		return f, dibs.Unavail(dibs.EffectNone, err)
	}
	var rest string
	f.user, rest, err = format.CutName(res.Rest[1].Text)
	if err != nil || rest != "" {
		return f, dibs.Unavail(dibs.EffectNone, errors.Join(conn.ErrShape, err))
	}
	return f, nil
}

// find returns a grant by its place; see dibs.Engine.
func (s *shard) find(ctx context.Context, at dibs.Cursor) (dibs.Grant, bool, error) {
	f, err := s.look(ctx, at)
	if errors.Is(err, dibs.ErrNotFound) || f.absent {
		return dibs.Grant{}, false, nil
	}
	if err != nil {
		return dibs.Grant{}, false, err
	}
	g, err := format.GrantOf(s.id, f.user, f.record+f.items, f.payInMS)
	if err != nil {
		return dibs.Grant{}, false, dibs.Unavail(dibs.EffectNone, err)
	}
	return g, true, nil
}

// holdingsOf returns the grants of a user on the shard, oldest first.
func (s *shard) holdingsOf(ctx context.Context, user string) ([]dibs.Grant, error) {
	k := &s.keys
	res, err := s.read(ctx, conn.HoldingsScript, []string{k.Meta, k.Holdings, k.Places, k.Issued}, format.Itoa(format.HashOf(user)), string(format.AppendName(nil, user)))
	if err != nil {
		return nil, err
	}
	if len(res.Rest)%2 != 1 {
		return nil, dibs.Unavail(dibs.EffectNone, conn.ErrShape)
	}
	payIn, err := strconv.ParseInt(res.Rest[0].Text, 10, 64)
	if err != nil {
		return nil, dibs.Unavail(dibs.EffectNone, err)
	}
	var grants []dibs.Grant
	for at := 1; at < len(res.Rest); at += 2 {
		g, err := format.GrantOf(s.id, user, res.Rest[at].Text+res.Rest[at+1].Text, payIn)
		if err != nil {
			return nil, dibs.Unavail(dibs.EffectNone, err)
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// stats counts the shard, but for the claims that wait in this process. Nothing is
// ever queued for a commit: Redis answers when an entry is as durable as its settings
// say.
func (s *shard) stats(ctx context.Context) (dibs.ShardStats, error) {
	keys := []string{s.keys.Meta}
	if s.keys.Product != "" {
		keys = append(keys, s.keys.Counted)
	}
	res, err := s.read(ctx, conn.StatsScript, keys)
	if err != nil {
		return dibs.ShardStats{}, err
	}
	if len(res.Rest) < 9 {
		return dibs.ShardStats{}, dibs.Unavail(dibs.EffectNone, conn.ErrShape)
	}
	st := dibs.ShardStats{
		Head:      res.At,
		Now:       res.NowMS,
		Settled:   dibs.Cursor{Epoch: uint16(res.Rest[5].Number), Seq: uint32(res.Rest[6].Number)},
		Uncounted: uint32(res.Rest[8].Number),
	}
	for i, field := range map[int]*int64{0: &st.Remaining, 1: &st.Granted, 2: &st.HeadAt, 4: &st.Version, 7: &st.Moved} {
		if *field, err = strconv.ParseInt(res.Rest[i].Text, 10, 64); err != nil {
			return dibs.ShardStats{}, dibs.Unavail(dibs.EffectNone, err)
		}
	}
	return st, nil
}
