package livestats

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// twoNodes are meters of two nodes on one Redis, with what each of them counts.
func twoNodes(t *testing.T) (nodes [2]*Meters, worlds [2]*world, redis *servers.Redis) {
	t.Helper()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	for i := range nodes {
		engine, err := redisengine.Open(t.Context(), redisengine.Config{URL: redis.URL()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := engine.Close(context.Background()); err != nil {
				t.Logf("a node closes with: %v", err)
			}
		})
		w := fresh()
		worlds[i] = w
		nodes[i] = New(Config{
			Campaigns: w, Stats: serviceOf{w}, EngineTimes: w.times, Refused: w.refused, Engine: engineOf{w}, Ledger: ledgerOf{w},
			Store: engine.Abilities().Store, Every: 20 * time.Millisecond,
		})
	}
	return nodes, worlds, redis
}

// A node's measures have what all nodes refused and timed; what a node counted before it was seen is in no rate; and a
// node that has left is forgotten.
func TestMeasuresOfTwoNodes(t *testing.T) {
	nodes, worlds, _ := twoNodes(t)
	worlds[1].stats.Refused = map[string]int64{"sold_out": 1000, "limit_reached": 7}
	var running sync.WaitGroup
	begin := func(m *Meters) context.CancelFunc {
		ctx, stop := context.WithCancel(t.Context())
		running.Go(func() { m.Run(ctx) })
		return stop
	}
	defer running.Wait()
	defer begin(nodes[0])()
	stopOther := begin(nodes[1])
	defer stopOther()

	moved, left := false, false
	err := nodes[0].Follow(t.Context(), "c", func(v Measure) error {
		refused := v.Stats.Refused
		switch {
		case !moved && refused["sold_out"] == 1005 && refused["limit_reached"] == 7:
			if v.Stats.RefusedCountedBy != api.AllNodes {
				t.Errorf("refusals of all nodes are said to be counted by %q", v.Stats.RefusedCountedBy)
			}
			// The other node refuses and times more from here on.
			moved = true
			unlock := worlds[1].lock()
			worlds[1].stats.Refused = map[string]int64{"sold_out": 1100, "limit_reached": 7}
			worlds[1].tally = dibs.Tally{Bounds: []int64{1e6, 10e6}, Counts: []int64{0, 90, 0}}
			unlock()
		case !moved && len(v.PerSecond.Refused) > 0:
			t.Errorf("a rate of what was counted before: %+v", v)
			return errEnough
		case moved && !left && v.Latency.Count == 90:
			if v.PerSecond.Refused["sold_out"] <= 0 || refused["sold_out"] != 1105 || v.Latency.P99 != 10 {
				t.Errorf("%+v", v)
			}
			left = true
			stopOther()
		case left && refused["sold_out"] == 5:
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Error(err)
	}
}

// Nothing is published of campaigns that are not watched, and what is published has an end.
func TestBoardForgets(t *testing.T) {
	nodes, _, redis := twoNodes(t)
	a, b := nodes[0].board, nodes[1].board
	exchange := func(of *board, every time.Duration) {
		t.Helper()
		if err := of.exchange(t.Context(), every); err != nil {
			t.Fatal(err)
		}
	}
	exchange(a, time.Second)
	ask := func(args ...string) int64 {
		t.Helper()
		m, err := redis.Do(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := m.ToInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if keys := ask("EXISTS", boardKeys[0], boardKeys[1]); keys != 0 {
		t.Errorf("%d keys of campaigns that nobody watches", keys)
	}
	a.watch("c", 1)
	for range sureAfter - 1 {
		exchange(a, time.Minute)
		exchange(b, time.Minute)
		if of, known := a.of("c"); known || of != nil {
			t.Errorf("counts are said to be of all nodes before each was asked: %+v", of)
		}
	}
	exchange(a, time.Minute)
	if of, known := a.of("c"); !known || len(of) != 1 || of[b.node].Refused["sold_out"] != 5 {
		t.Errorf("%+v", of)
	}
	if of, _ := b.of("c"); len(of) != 0 {
		t.Error("a node that watches nothing has counts of others")
	}
	for _, key := range boardKeys {
		if ttl := ask("PTTL", key); ttl <= 0 || ttl > (goodFor*time.Minute).Milliseconds() {
			t.Errorf("%s is kept for %d ms", key, ttl)
		}
	}
}

func TestReadExchange(t *testing.T) {
	for name, answer := range map[string][]any{
		"nothing": {}, "no number": {"c"}, "too few": {int64(2), "c"}, "no whole entry": {int64(0), "c", "n"}, "no JSON": {int64(0), "c", "n", "{"}, "a number inside": {int64(1), int64(1)},
	} {
		if _, _, err := readExchange(answer); !errors.Is(err, errShape) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wanted, others, err := readExchange([]any{int64(1), "c", "c", "n", `{"refused":{"ended":3},"engine":{}}`})
	if err != nil || len(wanted) != 1 || others["c"]["n"].Refused["ended"] != 3 {
		t.Errorf("%v %v %v", wanted, others, err)
	}
}
