package plan

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLeast finds the smallest number that is enough.
func TestLeast(t *testing.T) {
	for want := 1; want <= 70; want++ {
		tries := 0
		got, err := least(1, 64, func(n int) (bool, error) { tries++; return n >= want, nil })
		if err != nil || got != min(want, 64) || tries > 14 {
			t.Errorf("least found %d for %d in %d tries: %v", got, want, tries, err)
		}
	}
}

// TestSmallest finds a deployment that keeps the target, and one node or shard less
// does not keep it.
func TestSmallest(t *testing.T) {
	q := Question{Users: 3_000_000, Stock: 3_000_000, Over: 5 * time.Second, Engine: Redis, Shards: FindShards, Target: 200 * time.Millisecond}
	a := ask(t, q)
	if !a.Keeps || a.All.P99 > 200 || a.Question.Nodes < 2 || a.Question.Shards < 2 {
		t.Fatalf("kept %v with %d nodes and %d shards, p99 %g ms", a.Keeps, a.Question.Nodes, a.Question.Shards, a.All.P99)
	}
	fewer := q
	fewer.Nodes, fewer.Shards = a.Question.Nodes-1, a.Question.Shards
	if b := ask(t, fewer); b.Keeps {
		t.Errorf("%d nodes keep it too", fewer.Nodes)
	}
	fewer.Nodes, fewer.Shards = MaxNodes, a.Question.Shards-1
	if b := ask(t, fewer); b.Keeps {
		t.Errorf("%d shards keep it too", fewer.Shards)
	}
}

// TestLimit finds the crowd from which the target is missed, and the part that is
// busiest then: the waits are short below it and too long above.
func TestLimit(t *testing.T) {
	rush := Question{Users: 400_000, Stock: 1_000_000, Over: 10 * time.Second, Engine: Redis, Target: 100 * time.Millisecond}
	for first, nodes := range map[string]int{nodesName: 2, redisName: 64} {
		q := rush
		q.Nodes = nodes
		a := ask(t, q)
		if a.Limit.First != first || a.Limit.Times < 0.5 || a.Limit.Times >= MostTimes {
			t.Fatalf("%+v, want %s first", a.Limit, first)
		}
		for times, keeps := range map[float64]bool{0.9: true, 1.15: false} {
			scaled := q
			scaled.Users = int64(float64(q.Users) * a.Limit.Times * times)
			scaled.Stock = int64(float64(q.Stock) * a.Limit.Times * times)
			if b := ask(t, scaled); b.Keeps != keeps {
				t.Errorf("%s: at %g times the limit of %.0f a second p99 is %g ms", first, times, a.Limit.Requests, b.All.P99)
			}
		}
	}
	small := ask(t, Question{Users: 100, Stock: 10, Over: 10 * time.Second})
	if small.Limit.Times != MostTimes || small.Limit.First != "" {
		t.Errorf("a hundred users: %+v", small.Limit)
	}
	flood := ask(t, Question{Users: 10_000_000, Stock: 10_000_000, Over: 10 * time.Second})
	if flood.Keeps || flood.Limit.Times >= 1 || flood.Limit.Requests <= 0 || flood.Limit.First != nodesName {
		t.Errorf("ten million users on one node: kept %v, %+v", flood.Keeps, flood.Limit)
	}
}

// TestAskEnds ends with its context.
func TestAskEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Ask(ctx, Default(), Question{Users: 1e8, Stock: 1e6, Over: time.Second, Engine: Redis}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
