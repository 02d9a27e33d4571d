package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// holderParts is how many parts the claims of holders are made in: the first and the last are
// compared.
const holderParts = 10

// holding is what one campaign with many holders costs. bytes are those of a holder: of the process
// for the memory engine, of Redis for the other. first and last are the CPU of process and Redis for
// a grant, settling included, in µs, of the first tenth of the grants and of the last. settled is how
// long settling took once the last grant was answered; load how long after a restart the first new
// claim was granted; verified how long dibs verify took.
type holding struct {
	bytes, first, last        float64
	settled, loaded, verified time.Duration
}

// holdersPart fills one campaign with -holders grants, on the memory engine and on Redis, and then
// restarts and verifies it. It is the one part that needs memory by the gigabyte: some 0.5 KB for each
// holder, Redis and the database's pages included.
func holdersPart(ctx context.Context, o *options) error {
	fmt.Println("| engine | holders | bytes of a holder | CPU of a grant, first tenth, µs | last tenth, µs | ratio | settled after, s | first grant after a restart, s | verified in, s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, engine := range []string{node.Memory, "redis"} {
		h, err := hold(ctx, o, engine)
		if err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		fmt.Printf("| %s | %d | %.0f | %.1f | %.1f | %.2f | %.1f | %.1f | %.1f |\n", engine, o.holders/holderParts*holderParts, h.bytes, h.first, h.last, h.last/h.first,
			h.settled.Seconds(), h.loaded.Seconds(), h.verified.Seconds())
	}
	return nil
}

// hold measures one engine.
func hold(ctx context.Context, o *options, engine string) (h holding, err error) {
	cfg := node.Config{Engine: engine}
	var redis []*servers.Redis
	if engine != node.Memory {
		r, stop, err := startRedis(servers.RedisAlways...)
		if err != nil {
			return h, err
		}
		defer stop()
		redis, cfg.Engine = []*servers.Redis{r}, r.URL()
	}
	b, err := openNode(ctx, cfg)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err = b.campaign(ctx, "c", 1_000_000_000, 1); err == nil {
		err = b.fill(ctx, o, redis, &h)
	}
	if err = errors.Join(err, b.Close(ctx)); err != nil {
		return h, err
	}
	cfg.Dir, cfg.Migrate = b.dir, true
	return h, h.restart(ctx, cfg, redis)
}

// fill makes the grants, and waits after each tenth until it is settled.
func (n *benchNode) fill(ctx context.Context, o *options, redis []*servers.Redis, h *holding) error {
	claims := o.holders / holderParts
	grown, err := rise(ctx, held(redis), func() error {
		for part := range holderParts {
			spent, err := rise(ctx, spentBy(redis...), func() error {
				if _, err := n.rush(ctx, "c", o.callers, part<<24, claims); err != nil {
					return err
				}
				began := time.Now()
				_, err := n.settleRate(ctx)
				h.settled = time.Since(began)
				return err
			})
			if err != nil {
				return err
			}
			if h.last = spent / float64(claims); part == 0 {
				h.first = h.last
			}
		}
		return nil
	})
	h.bytes = grown / float64(claims*holderParts)
	return err
}

// restart opens the node again, on a Redis that was killed, and verifies the campaign.
func (h *holding) restart(ctx context.Context, cfg node.Config, redis []*servers.Redis) (err error) {
	for _, r := range redis {
		r.Kill()
	}
	began := time.Now()
	for _, r := range redis {
		if err := r.Start(); err != nil {
			return err
		}
	}
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close(ctx)) }()
	err = until(ctx, 10*time.Millisecond, func() (bool, error) {
		err := claim(ctx, n.Service, "c", "late", "late", dibs.Granted)
		if errors.Is(err, dibs.ErrUnavailable) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("a claim after the restart: %w", err)
	}
	h.loaded = time.Since(began)
	began = time.Now()
	err = verified(ctx, n.Service, "c")
	h.verified = time.Since(began)
	return err
}

// held is the memory that claims are in: of this process, or of Redis if there is one.
func held(redis []*servers.Redis) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		if len(redis) == 0 {
			return float64(heap()), nil
		}
		info, err := redis[0].Info(ctx, "memory")
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(info["used_memory"], 64)
	}
}
