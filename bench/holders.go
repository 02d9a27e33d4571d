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
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := node.Config{Dir: dir, Migrate: true, Engine: engine}
	var redis *servers.Redis
	if engine != node.Memory {
		if redis, err = servers.StartRedis(dir, servers.RedisAlways...); err != nil {
			return h, err
		}
		defer redis.Kill()
		cfg.Engine = redis.URL()
	}
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return h, err
	}
	b := &benchNode{n, dir}
	if err = b.campaign(ctx, "c", 1_000_000_000, 1); err == nil {
		err = b.fill(ctx, o, redis, &h)
	}
	if err = errors.Join(err, n.Close(ctx)); err != nil {
		return h, err
	}
	return h, h.restart(ctx, cfg, redis)
}

// fill makes the grants, and waits after each tenth until it is settled.
func (n *benchNode) fill(ctx context.Context, o *options, redis *servers.Redis, h *holding) error {
	empty, err := held(ctx, redis)
	if err != nil {
		return err
	}
	claims := o.holders / holderParts
	for part := range holderParts {
		before, err := spent(ctx, redis)
		if err != nil {
			return err
		}
		if _, err := n.rush(ctx, "c", o.callers, part<<24, claims, dibs.Granted); err != nil {
			return err
		}
		began := time.Now()
		if _, err := n.settleRate(ctx); err != nil {
			return err
		}
		h.settled = time.Since(began)
		after, err := spent(ctx, redis)
		if err != nil {
			return err
		}
		h.last = (after - before) / float64(claims)
		if part == 0 {
			h.first = h.last
		}
	}
	full, err := held(ctx, redis)
	h.bytes = float64(full-empty) / float64(claims*holderParts)
	return err
}

// restart opens the node again, on a Redis that was killed, and verifies the campaign.
func (h *holding) restart(ctx context.Context, cfg node.Config, redis *servers.Redis) error {
	if redis != nil {
		redis.Kill()
	}
	began := time.Now()
	if redis != nil {
		if err := redis.Start(); err != nil {
			return err
		}
	}
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	for {
		r, err := n.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "c", UserID: "late", Key: "late"})
		if err == nil && r.Outcome == dibs.Granted {
			break
		}
		if err == nil || !errors.Is(err, dibs.ErrUnavailable) {
			return errors.Join(fmt.Errorf("a claim after the restart: %s, %w", r.Outcome, err), n.Close(ctx))
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), n.Close(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
	h.loaded = time.Since(began)
	began = time.Now()
	report, err := n.Audit.Verify(ctx, "c")
	if err == nil && !report.OK {
		err = fmt.Errorf("a promise is broken: %+v", report)
	}
	h.verified = time.Since(began)
	return errors.Join(err, n.Close(ctx))
}

// spent is the CPU of this process, and of Redis if there is one, in µs.
func spent(ctx context.Context, redis *servers.Redis) (float64, error) {
	if redis == nil {
		return spentBy(ctx, nil)
	}
	return spentBy(ctx, []*servers.Redis{redis})
}

// held is the memory that claims are in: of this process, or of Redis if there is one.
func held(ctx context.Context, redis *servers.Redis) (int64, error) {
	if redis == nil {
		return heap(), nil
	}
	info, err := redis.Info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info["used_memory"], 10, 64)
}
