package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs/internal/wait"
)

// working is a batch of one subject whose handler takes so long, and how often
// the broker was told to keep its entries.
func working(n int, takes time.Duration, keep func() error) (b *batch, handled *int, told *[]int) {
	handled, told = new(int), &[]int{}
	cfg := &Config{Timeout: 30 * time.Second, Workers: 8, Logger: slog.New(slog.DiscardHandler)}
	cfg.Handle = func(ctx context.Context, _ *Delivery) Decision {
		wait.Sleep(ctx, takes)
		*handled++
		return Commit
	}
	b = &batch{cfg: cfg, keptAt: time.Now(), keep: func(_ context.Context, entries []*reading) error {
		if err := keep(); err != nil {
			return err
		}
		*told = append(*told, len(entries))
		return nil
	}}
	for i := range n {
		b.entries = append(b.entries, read(fmt.Sprint(i), "s", `{"id":"x"}`, 1))
	}
	return b, handled, told
}

// TestLongBatch: the events of one subject, which are handled one after the
// other, are kept as long as that takes, however long.
func TestLongBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		b, handled, told := working(20, 29*time.Second, func() error { return nil })
		if !b.handle(t.Context()) || *handled != 20 {
			t.Errorf("%d events were handled, and the batch was lost", *handled)
		}
		if took := time.Since(begun); took != 580*time.Second {
			t.Errorf("it took %s", took)
		}
		// Each timeout, those that are left.
		if got := fmt.Sprint(*told); got != "[19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1]" {
			t.Errorf("the broker was told to keep %s", got)
		}
	})
}

// TestLostBatch: a consumer that cannot tell the broker that it still works
// leaves what it has not begun to others, in time.
func TestLostBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		b, handled, _ := working(20, 29*time.Second, func() error { return errors.New("no answer") })
		ours := b.handle(t.Context())
		if took := time.Since(begun); *handled != 4 || took != 116*time.Second || took > kept*b.cfg.Timeout || !ours {
			t.Errorf("%d events were handled in %s", *handled, took)
		}
		for i, e := range b.entries {
			if _, dead := b.cfg.buried(e); dead || e.untried != (i >= 4) {
				t.Errorf("the entry %d is %+v", i, e)
			}
		}
	})
	// A process that was frozen does not tell the broker either.
	synctest.Test(t, func(t *testing.T) {
		b, handled, told := working(2, time.Hour, func() error { return nil })
		b.keptAt = b.keptAt.Add(-kept * b.cfg.Timeout)
		if b.handle(t.Context()) || *handled > 0 || len(*told) > 0 {
			t.Errorf("a late consumer handled %d, and kept %v", *handled, *told)
		}
	})
}
