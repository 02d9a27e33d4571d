package redisengine

import (
	"github.com/dibs-dev/dibs"
	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// invalidated is told by Redis which keys have changed; nil stands for all, after a
// lost connection or a flush.
func (s *lanes) invalidated(changed []rueidis.RedisMessage) {
	if changed == nil {
		for _, l := range *s.all.Load() {
			l.follower.lift()
			s.tellChange(l.id)
		}
		return
	}
	for i := range changed {
		key, err := changed[i].ToString()
		if err != nil {
			continue
		}
		if id, err := format.ShardOfState(key); err == nil {
			if l := s.kept(id); l != nil {
				l.follower.lift()
				s.tellChange(id)
			}
		}
	}
}

// onChange sets the function that is called with shards that may have changed; see
// dibs.Abilities.
func (s *lanes) onChange(f func(dibs.ShardID)) { s.changed.Store(&f) }

func (s *lanes) tellChange(id dibs.ShardID) {
	if f := s.changed.Load(); f != nil {
		(*f)(id)
	}
}
