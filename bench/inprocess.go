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

// benchNode is an embedded dibs in a temporary folder.
type benchNode struct {
	*node.Node
	dir string
}

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

// discard ends the node and removes its folder; what was not settled does not
// matter any more.
func (n *benchNode) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = n.Close(ctx)
	if err := os.RemoveAll(n.dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// campaign publishes a sale of so many units.
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

// rush lets callers claim one unit each, for users first, first+1, … until
// claims are made; each must be answered with want.
func (n *benchNode) rush(ctx context.Context, id string, callers, first, claims int, want dibs.Reason) (time.Duration, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	runtime.GC()
	// Callers have contexts of their own: one that all of them wait on would be
	// a bottleneck that no server has.
	own := context.WithoutCancel(ctx)
	started := time.Now()
	for range callers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
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

// refusers is how many callers the refusals come from: they do not wait, so
// that more of them change nothing but the work of the scheduler.
const refusers = 16

// refuse lets callers be refused by a sold-out campaign.
func (n *benchNode) refuse(ctx context.Context, id, key string, claims int) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make(chan error, refusers)
	users := make([]string, 4096)
	for i := range users {
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

// scatter maps claims to users in no order, as a crowd comes: an odd factor is
// a one-to-one map of 2^24 numbers.
func scatter(i int) int { return i * 0x9e3779b1 & (1<<24 - 1) }
