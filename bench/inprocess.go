package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/node"
)

// benchNode is an embedded dibs in a temporary folder, which discard removes.
type benchNode struct {
	*node.Node
	dir string
}

// openNode opens a node in a temporary folder; cfg is the defaults but for what it sets.
func openNode(ctx context.Context, cfg node.Config) (*benchNode, error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return nil, err
	}
	cfg.Dir, cfg.Migrate = dir, true
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &benchNode{n, dir}, nil
}

// discard ends the node and removes its folder. It waits a second at most: what is not settled by
// then does not matter any more.
func (n *benchNode) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = n.Close(ctx)
	if err := os.RemoveAll(n.dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// campaign publishes a sale of so many units that has begun and needs no payment, so that a grant
// is final and its expiry adds no work.
func (n *benchNode) campaign(ctx context.Context, id string, units, limit int64) error {
	_, err := published(ctx, n.Service, dibs.CampaignSpec{ID: id, Stock: dibs.StockSpec{Units: &units}, Limit: &limit})
	return err
}

// soldOut publishes a sale and has as many users as there are units take them.
func (n *benchNode) soldOut(ctx context.Context, id string, callers, units int) error {
	if err := n.campaign(ctx, id, int64(units), 1); err != nil {
		return err
	}
	_, err := n.rush(ctx, id, callers, 0, units)
	return err
}

// published makes and publishes a campaign that is open now: a sale, where spec does not say another kind.
func published(ctx context.Context, s *node.Service, spec dibs.CampaignSpec) (*dibs.Campaign, error) {
	now := time.Now()
	spec.Kind, spec.Title = cmp.Or(spec.Kind, dibs.Sale), spec.ID
	spec.StartsAt, spec.EndsAt = now.Add(-time.Hour), now.Add(24*time.Hour)
	if _, err := s.Campaigns.Create(ctx, spec); err != nil {
		return nil, err
	}
	return s.Campaigns.Publish(ctx, spec.ID)
}

// claim makes a claim, whose answer must be want.
func claim(ctx context.Context, s *node.Service, campaign, user, key string, want dibs.Reason) error {
	r, err := s.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: campaign, UserID: user, Key: key})
	if err == nil && r.Outcome != want {
		err = fmt.Errorf("a claim is answered %s, not %s", r.Outcome, want)
	}
	return err
}

// rush lets callers claim one unit each, one claim at a time for each caller, until so many claims
// are made, and returns how long that took. The users are u with first plus a scattered number of
// 24 bits, each once. Each answer must be a grant: a claim that is refused costs less, and one wrong
// answer fails the round.
func (n *benchNode) rush(ctx context.Context, id string, callers, first, claims int) (time.Duration, error) {
	// Else this round would collect the garbage of an earlier one.
	runtime.GC()
	started := time.Now()
	err := inParallel(context.WithoutCancel(ctx), callers, claims, func(own context.Context, i int) error {
		// Every 1,024th claim looks at ctx, since the claims have another context.
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return claim(own, n.Service, id, "u"+strconv.Itoa(first+scatter(i)), "", dibs.Granted)
	})
	return time.Since(started), err
}

// inParallel calls f for each number below n, in order of their start, by so many callers at a
// time, and returns the first error, after which no caller goes on. Callers have contexts of their
// own, where ctx can end: one that all of them wait on would be a bottleneck that no server has.
func inParallel(ctx context.Context, callers, n int, f func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	var all errgroup.Group
	for range callers {
		all.Go(func() error {
			ctx := ctx
			if ctx.Done() != nil {
				own, cancel := context.WithCancel(ctx)
				defer cancel()
				ctx = own
			}
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					next.Store(int64(n))
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// until asks at such intervals until met says yes.
func until(ctx context.Context, every time.Duration, met func() (bool, error)) error {
	for {
		if yes, err := met(); yes || err != nil {
			return err
		}
		if !wait.Sleep(ctx, every) {
			return ctx.Err()
		}
	}
}

// rise returns by how much a figure grows while do runs.
func rise(ctx context.Context, figure func(context.Context) (float64, error), do func() error) (float64, error) {
	before, err := figure(ctx)
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, err
	}
	after, err := figure(ctx)
	return after - before, err
}

// refusers is how many callers the refusals come from. A refusal waits for nothing, so more
// callers than this change nothing but the work of the scheduler.
const refusers = 16

// refuse has callers claim from a sold-out campaign, and returns how long that took. Every answer
// must be sold out. The names of the users are made before, so that no allocation but those of
// dibs is measured; there are so many that one line of the cache does not answer for all.
func (n *benchNode) refuse(ctx context.Context, id, key string, claims int) (time.Duration, error) {
	var all errgroup.Group
	// Users who hold nothing: those of rush begin with u.
	users := make([]string, 4096)
	for i := range users {
		users[i] = "x" + strconv.Itoa(scatter(i))
	}
	started := time.Now()
	for w := range refusers {
		all.Go(func() error {
			for i := range claims / refusers {
				if err := claim(ctx, n.Service, id, users[(i+w)%len(users)], key, dibs.SoldOut); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := all.Wait()
	return time.Since(started), err
}

// scatter maps claims to users in no order, as a crowd comes: users in order would all meet the
// same end of an index and the same buckets. An odd factor is a one-to-one map of 2^24 numbers.
func scatter(i int) int { return i * 0x9e3779b1 & (1<<24 - 1) }
