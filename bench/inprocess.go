package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// benchNode is an embedded dibs in a temporary folder, which discard removes.
type benchNode struct {
	*node.Node
	dir string
}

// openNode opens a node with the memory engine, on SQLite, with the defaults where tune is zero.
func openNode(ctx context.Context, tune node.ServiceConfig) (*benchNode, error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return nil, err
	}
	n, err := node.Open(ctx, node.Config{Dir: dir, Migrate: true, Service: tune})
	if err != nil {
		return nil, err
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
	_, err := n.Service.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Limit: &limit,
	})
	if err == nil {
		_, err = n.Service.Campaigns.Publish(ctx, id)
	}
	return err
}

// rush lets callers claim one unit each, one claim at a time for each caller, until so many claims
// are made, and returns how long that took. The users are u with first plus a scattered number of
// 24 bits, each once. Each answer must be want: a claim that is refused costs less than a grant,
// and one wrong answer fails the round.
func (n *benchNode) rush(ctx context.Context, id string, callers, first, claims int, want dibs.Reason) (time.Duration, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	// Else this round would collect the garbage of an earlier one.
	runtime.GC()
	// Callers have contexts of their own: one that all of them wait on would be
	// a bottleneck that no server has.
	own := context.WithoutCancel(ctx)
	started := time.Now()
	for range callers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				// Every 1,024th claim looks at ctx, since the claims have another context.
				if i >= claims || failed.Load() != nil || i%1024 == 0 && ctx.Err() != nil {
					return
				}
				r, err := n.Service.Claims.Claim(own, dibs.ClaimRequest{CampaignID: id, UserID: "u" + strconv.Itoa(first+scatter(i))})
				if err == nil && r.Outcome != want {
					err = fmt.Errorf("claim answered %s, want %s", r.Outcome, want)
				}
				if err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(started)
	if err := failed.Load(); err != nil {
		return took, *err
	}
	return took, nil
}

// refusers is how many callers the refusals come from. A refusal waits for nothing, so more
// callers than this change nothing but the work of the scheduler.
const refusers = 16

// refuse has callers claim from a sold-out campaign, and returns how long that took. Every answer
// must be sold out. The names of the users are made before, so that no allocation but those of
// dibs is measured; there are so many that one line of the cache does not answer for all.
func (n *benchNode) refuse(ctx context.Context, id, key string, claims int) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make(chan error, refusers)
	users := make([]string, 4096)
	for i := range users {
		// Users who hold nothing: those of rush begin with u.
		users[i] = "x" + strconv.Itoa(scatter(i))
	}
	started := time.Now()
	for w := range refusers {
		wg.Go(func() {
			for i := range claims / refusers {
				r, err := n.Service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: id, UserID: users[(i+w)%len(users)], Key: key})
				if err == nil && r.Outcome != dibs.SoldOut {
					err = fmt.Errorf("claim answered %s", r.Outcome)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(started)
	select {
	case err := <-errs:
		return took, err
	default:
		return took, nil
	}
}

// scatter maps claims to users in no order, as a crowd comes: users in order would all meet the
// same end of an index and the same buckets. An odd factor is a one-to-one map of 2^24 numbers.
func scatter(i int) int { return i * 0x9e3779b1 & (1<<24 - 1) }
