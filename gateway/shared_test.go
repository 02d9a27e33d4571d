package gateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/wait"
)

// TestSharedTicketsAreBounded: the nodes of one Redis make a bounded number of tickets together in the life of one. The
// refusal says when there are more, nothing is kept for a ticket that is refused, and those that there are stay good.
func TestSharedTicketsAreBounded(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	var nodes [2]*sharedTickets
	for i := range nodes {
		engine, err := redisengine.Open(t.Context(), redisengine.Config{URL: redis.URL()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := engine.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		nodes[i] = &sharedTickets{SharedStore: engine.Abilities().Store, most: 3}
	}
	const keep = 10 * time.Minute
	for i, name := range []string{"a", "b", "c"} {
		if err := nodes[i%2].Put(t.Context(), name, "ann", keep); err != nil {
			t.Fatalf("ticket %s: %v", name, err)
		}
	}
	for i, node := range nodes {
		var refusal *dibs.Error
		if err := node.Put(t.Context(), "d", "ann", keep); !errors.As(err, &refusal) || refusal.Reason != dibs.Overloaded ||
			refusal.RetryAfter <= 0 || refusal.RetryAfter > keep {
			t.Errorf("a fourth ticket, of node %d: %v", i, err)
		}
	}
	if _, ok, err := nodes[0].Take(t.Context(), "d"); ok || err != nil {
		t.Errorf("a ticket that was refused is kept: %v", err)
	}
	if user, ok, err := nodes[0].Take(t.Context(), "a"); user != "ann" || !ok || err != nil {
		t.Errorf("a ticket from before: %q, %v, %v", user, ok, err)
	}
	// The time of these tickets is soon over.
	if _, err := redis.Do(t.Context(), "PEXPIRE", countKey, "1000"); err != nil {
		t.Fatal(err)
	}
	for again := time.Now().Add(time.Minute); ; {
		err := nodes[1].Put(t.Context(), "e", "ann", keep)
		if err == nil {
			break
		}
		var refusal *dibs.Error
		if !errors.As(err, &refusal) || time.Now().After(again) {
			t.Fatal(err)
		}
		wait.Sleep(t.Context(), refusal.RetryAfter)
	}
}
