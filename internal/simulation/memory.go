package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// memory is what a server holds, and what its replica copies.
// It belongs to one server and is guarded by that server's mutex. A copy shares with
// it only what never changes, such as entries.
type memory struct {
	shards   map[dibs.ShardID]*shard
	journals map[dibs.ShardID]*journal
	leases   map[dibs.ShardID]lease
	// listed is at which step of its opening each shard was listed last.
	listed map[dibs.ShardID]int64
	// past is every entry of the history that led here, trimmed or not: what the
	// simulation knows, and no node can ask for.
	past map[dibs.ShardID][]*decided
}

func newMemory() *memory {
	return &memory{
		shards: map[dibs.ShardID]*shard{}, journals: map[dibs.ShardID]*journal{}, leases: map[dibs.ShardID]lease{},
		listed: map[dibs.ShardID]int64{}, past: map[dibs.ShardID][]*decided{},
	}
}

// clone copies a memory: what comes next changes one of the two.
// Slices are clipped: an append to the copy allocates, and the original may append in
// place.
func (m *memory) clone() *memory {
	c := &memory{
		shards: make(map[dibs.ShardID]*shard, len(m.shards)), journals: make(map[dibs.ShardID]*journal, len(m.journals)),
		leases: maps.Clone(m.leases), listed: maps.Clone(m.listed), past: make(map[dibs.ShardID][]*decided, len(m.past)),
	}
	for id, s := range m.shards {
		c.shards[id] = s.clone()
	}
	for id, j := range m.journals {
		c.journals[id] = &journal{entries: slices.Clip(j.entries), end: j.end, gone: j.gone}
	}
	for id, past := range m.past {
		c.past[id] = slices.Clip(past)
	}
	return c
}

// journal is a shard's stream. Its end is known when all entries were trimmed.
type journal struct {
	entries []*decided
	end     dibs.Cursor
	// gone is when a retired shard's journal expires; zero for never.
	gone time.Time
}

// lease is who settles a shard, and until when.
type lease struct {
	holder string
	until  time.Time
}

// The states of a shard.
const (
	stateOpen    = "open"
	stateLoading = "loading"
	stateShut    = "shut"
)

// shard is the meta hash of a shard and what is held beside it.
//
// While it is open, left is what the stock has beyond granted, free has as many items
// as left where there are items, and claims and users have the same holdings. While
// it is loading, only state, run, token, head and replaces mean anything.
type shard struct {
	state, run, token string
	head              dibs.Cursor
	headAt            int64
	left, granted     int64
	def               definition
	values            []string
	free              []uint32
	claims            map[dibs.Cursor]*dibs.Holding
	users             map[string][]*dibs.Holding
	// moved is what left by transfers, less what came.
	moved int64
	// refs are the stock changes that were counted.
	refs map[string]bool
	// replaces says that a load takes the place of what was shut, and its memory.
	replaces bool
	settled  dibs.Cursor
}

func (s *shard) clone() *shard {
	c := *s
	c.free = slices.Clone(s.free)
	c.refs = maps.Clone(s.refs)
	c.claims = make(map[dibs.Cursor]*dibs.Holding, len(s.claims))
	c.users = make(map[string][]*dibs.Holding, len(s.users))
	for user, of := range s.users {
		for _, h := range of {
			own := *h
			c.claims[own.Cursor] = &own
			c.users[user] = append(c.users[user], &own)
		}
	}
	return &c
}

// hold adds a claim to those that a shard knows.
func (s *shard) hold(h dibs.Holding) {
	s.claims[h.Cursor] = &h
	s.users[h.UserID] = append(s.users[h.UserID], &h)
	if !h.Released {
		s.granted += h.Quantity
	}
}

// take removes items from the free ones.
func (s *shard) take(items []uint32) {
	if len(items) > 0 {
		s.free = slices.DeleteFunc(s.free, func(n uint32) bool { return slices.Contains(items, n) })
	}
}

// definition is a campaign as the scripts read it.
type definition struct {
	version, startsMS, endsMS, payInMS, limit int64
	state                                     dibs.State
	items, limitFirst                         bool
	shards                                    int
}

func define(c *dibs.Campaign) definition {
	return definition{
		version: c.Version, startsMS: c.StartsAt.UnixMilli(), endsMS: c.EndsAt.UnixMilli(), payInMS: c.PayWithin.Milliseconds(),
		limit: c.LimitPerUser, state: c.State, items: c.HasItems(), limitFirst: c.LimitFirst(), shards: c.Shards,
	}
}
