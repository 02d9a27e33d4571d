package node_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/internal/servers"
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

// TestImportIntoAnOpenCampaignOnRedis imports codes while a campaign goes on: more
// than one command carries. Redis grants each of them once, and no other.
func TestImportIntoAnOpenCampaignOnRedis(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Kill()
	n, err := node.Open(t.Context(), node.Config{Dir: t.TempDir(), Migrate: true, Engine: redis.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ctx, svc := t.Context(), n.Service
	now := time.Now()
	if _, err = svc.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "spring", Kind: dibs.Coupon, Title: "Spring", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Items: []string{"first"}}, Limit: new(int64(100)),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err = svc.Campaigns.Publish(ctx, "spring"); err != nil {
		t.Fatal(err)
	}
	const codes, each, callers = 5199, 100, 8
	var file strings.Builder
	for i := range codes {
		fmt.Fprintf(&file, "C-%d\n", i)
	}
	if done, err := svc.Campaigns.ImportCodes(ctx, "spring", strings.NewReader(file.String()), "batch", nil); err != nil || done.Items != codes {
		t.Fatalf("%+v, %v", done, err)
	}
	var mu sync.Mutex
	owners := map[string]string{}
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := 0; ; i++ {
				user := fmt.Sprintf("u%d-%d", c, i)
				res, err := svc.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "spring", UserID: user, Key: "k", Quantity: each})
				if err != nil || res.Outcome != dibs.Granted {
					if err != nil || res.Outcome != dibs.SoldOut {
						t.Errorf("%s: %s, %v", user, res.Outcome, err)
					}
					return
				}
				mu.Lock()
				for _, code := range res.Claim.Items {
					if other, twice := owners[code]; twice {
						t.Errorf("%s has the code of %s", user, other)
					}
					owners[code] = user
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(owners) != codes+1 {
		t.Errorf("%d codes were granted of %d", len(owners), codes+1)
	}
	if report, err := svc.Audit.Verify(ctx); err != nil || !report.OK {
		t.Errorf("%+v, %v", report, err)
	}
}
