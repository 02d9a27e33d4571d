package router

import (
	"testing"

	"github.com/dibs-dev/dibs"
)

// TestScoresDivideShardsEvenly places shards on deployments: about as many on each, and a
// deployment more takes its part from the others and moves no shard between them.
func TestScoresDivideShardsEvenly(t *testing.T) {
	const shards = 20_000
	members := func(n int) *Engine {
		e := &Engine{}
		for i := range n {
			e.members = append(e.members, &member{number: i + 1})
		}
		return e
	}
	two, three := members(2), members(3)
	counts, moved := map[int]int{}, 0
	for i := range shards {
		id := dibs.ShardID{Campaign: uint32(i/4 + 1), Shard: uint8(i % 4)}
		on := func(e *Engine) int { return e.best(func(m *member) uint64 { return score(m.number, id) }).number }
		before, after := on(two), on(three)
		counts[after]++
		if after != before {
			moved++
			if after != 3 {
				t.Fatalf("shard %s moves from %d to %d, which is not the new one", id, before, after)
			}
		}
	}
	for number := 1; number <= 3; number++ {
		if n := counts[number]; n < shards*30/100 || n > shards*37/100 {
			t.Errorf("deployment %d has %d of %d shards", number, n, shards)
		}
	}
	if moved != counts[3] {
		t.Errorf("%d shards moved, and the new deployment has %d", moved, counts[3])
	}
}

// TestAwayGetsNothingNew: a shard that is on no deployment goes to one that answers.
func TestAwayGetsNothingNew(t *testing.T) {
	e := &Engine{members: []*member{{number: 1}, {number: 2}}}
	e.members[1].away.Store(true)
	for i := range uint32(100) {
		id := dibs.ShardID{Campaign: i + 1}
		if m := e.best(func(m *member) uint64 { return score(m.number, id) }); m.number != 1 {
			t.Fatalf("shard %s goes to deployment %d, which is away", id, m.number)
		}
	}
}
