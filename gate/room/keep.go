package room

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/dibs-dev/dibs"
)

//go:embed lua/keep.lua
var keepScript string

// keptAtOnce is how many keys one script keeps for longer.
// Redis does nothing else during a script, so each of them must stay short.
const keptAtOnce = 512

// keep implements store: the keys of a room expire some time after the end of the
// campaign, which may have been moved. Each node sees to it, since each may have
// gone by the old end for a moment longer than the others.
func (s *shared) keep(ctx context.Context, held []*dibs.Campaign) error {
	kept := make(map[uint32]int64, len(s.kept))
	var errs error
	for _, c := range held {
		if c.Gate == nil || c.Gate.Room == nil || c.Gate.Room.Mode == dibs.Lottery {
			continue
		}
		until, before := termsOf(c).expireMS, s.kept[c.Number]
		if before >= until {
			kept[c.Number] = before
			continue
		}
		// Of those behind one that fails, nothing is noted either.
		if errs == nil {
			if errs = s.keepOne(ctx, c, until); errs != nil {
				errs = fmt.Errorf("room: keeping the room of %s: %w", c.ID, errs)
			}
		}
		if errs == nil {
			before = until
		}
		kept[c.Number] = before
	}
	s.kept = kept
	return errs
}

// keepOne has all keys of a room expire at a later time.
func (s *shared) keepOne(ctx context.Context, c *dibs.Campaign, until int64) error {
	keys := []string{metaKey(c.Number), goneKey(c.Number)}
	for bucket := range uint32(buckets) {
		keys = append(keys, bucketAt(c.Number, bucket))
		last := bucket == buckets-1
		if len(keys) <= keptAtOnce && !last {
			continue
		}
		reply, err := s.redis.RunScript(ctx, keepScript, keys, itoa(until), flag(last))
		if err != nil {
			return err
		}
		if len(reply) != 1 {
			return errShape
		}
		if reply[0] != int64(1) {
			return nil
		}
		keys = keys[:1]
	}
	return nil
}
