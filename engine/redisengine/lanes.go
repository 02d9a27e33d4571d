package redisengine

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// lanes are the lanes of the shards that this process decides on.
//
// all is replaced, never changed: a claim finds its lane without a lock. mu is held
// while it is replaced, and for no request. Once the process is closed no lane is
// added.
type lanes struct {
	p   *process
	mu  sync.Mutex
	all atomic.Pointer[laneMap]
	// changed is called with shards that may have changed; nil for none.
	changed atomic.Pointer[func(dibs.ShardID)]
}

// keepGone is how long a lane stays whose shard Redis does not hold. A shard that
// was lost and is loaded again is there long before.
const keepGone = time.Minute

// laneKey is a shard's id in one number, since every claim looks its lane up:
// numbers are what a map finds fastest.
type laneKey uint64

type laneMap map[laneKey]*lane

func laneKeyOf(id dibs.ShardID) laneKey { return laneKey(id.Campaign)<<8 | laneKey(id.Shard) }

func newLanes(p *process) *lanes {
	s := &lanes{p: p}
	s.all.Store(&laneMap{})
	return s
}

// lane returns a shard's lane. One is made for any shard that is decided on;
// whether Redis holds the shard, its scripts say.
func (s *lanes) lane(id dibs.ShardID) (*lane, error) {
	if s.p.closed.Load() {
		return nil, errClosed
	}
	if l := s.kept(id); l != nil {
		return l, nil
	}
	keys, err := s.p.keysOf(id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.closed.Load() {
		return nil, errClosed
	}
	before := *s.all.Load()
	if l := before[laneKeyOf(id)]; l != nil {
		return l, nil
	}
	after := maps.Clone(before)
	s.evict(after)
	l := newLane(s.p, id, keys)
	after[laneKeyOf(id)] = l
	s.all.Store(&after)
	return l, nil
}

// shard is for reads, which may name any shard that there could be: one that this
// process does not decide on is not kept.
func (s *lanes) shard(id dibs.ShardID) (*shard, error) {
	if s.p.closed.Load() {
		return nil, errClosed
	}
	if l := s.kept(id); l != nil {
		return l.shard, nil
	}
	keys, err := s.p.keysOf(id)
	if err != nil {
		return nil, err
	}
	return &shard{p: s.p, id: id, keys: keys}, nil
}

// kept is the lane of a shard, nil when there is none.
func (s *lanes) kept(id dibs.ShardID) *lane { return (*s.all.Load())[laneKeyOf(id)] }

// waiting is how many claims of a shard this process has not decided.
func (s *lanes) waiting(id dibs.ShardID) int64 {
	if l := s.kept(id); l != nil {
		return l.waiting()
	}
	return 0
}

// last returns all lanes that there will be, once the process is closed.
func (s *lanes) last() laneMap {
	// A caller that saw the process open holds mu until its lane is among them.
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.all.Load()
}

// evict takes the lanes off a map whose shards Redis does not hold any more:
// campaigns come and go, and a process that runs for long would keep something of
// each. It is done whenever a lane is added, with mu held: then they never add up.
func (s *lanes) evict(all laneMap) {
	before := s.p.localMS() - keepGone.Milliseconds()
	maps.DeleteFunc(all, func(_ laneKey, l *lane) bool { return l.evict(before) })
}

// evict ends a lane that is not needed, when its shard has been gone since before a
// local time, in ms. The lane's view of the shard goes with it: where the shard is opened
// again, it is in a later epoch.
func (l *lane) evict(beforeMS int64) bool {
	l.known.Lock()
	gone := l.goneMS > 0 && l.goneMS < beforeMS
	l.known.Unlock()
	if !gone || l.leased.Load() || l.loading.Load() > 0 || !l.follower.resting() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evicted = len(l.queue) == 0 && l.inFlight == 0
	return l.evicted
}
