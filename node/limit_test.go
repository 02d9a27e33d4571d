package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/limit"
	"github.com/dibs-dev/dibs/node"
)

// Nodes of one ledger hash names under one key, which the ledger keeps: what a user
// used at each of them is added up in one place.
func TestNodesCountUsersTogether(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Kill()
	const used = 6
	dir := t.TempDir()
	for range 2 {
		n, err := node.Open(t.Context(), node.Config{
			Dir: dir, Migrate: true, Engine: redis.URL(),
			Limits: limit.Config{User: &dibs.LimitSpec{Rate: 1, Every: dibs.Duration(time.Hour), Burst: used}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		for range used {
			n.Limits.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
		}
	}
	opt, err := rueidis.ParseURL(redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	opt.DisableCache = true
	c, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	over := time.After(time.Minute)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		keys, err := c.Do(t.Context(), c.B().Keys().Pattern("dibs:limit:{users}:*").Build()).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) > 1 {
			t.Fatalf("the nodes count the user in %q", keys)
		}
		if len(keys) == 1 {
			left, err := c.Do(t.Context(), c.B().Pttl().Key(keys[0]).Build()).AsInt64()
			if err != nil {
				t.Fatal(err)
			}
			if ahead := time.Duration(left) * time.Millisecond; ahead > (2*used-1)*time.Hour {
				return
			}
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("a minute later, what the nodes told is in %q", keys)
		}
	}
}
