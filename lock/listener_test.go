package lock_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/dibs-dev/dibs/lock"
)

// inLine waits until so many wait for a lock.
func (k *kind) inLine(ctx context.Context, t *testing.T, name string, n int) {
	t.Helper()
	count := func() int {
		m, err := theRedis.Do(ctx, "ZCARD", "lock:{"+name+"}:line")
		must(t, err)
		at, err := m.AsInt64()
		must(t, err)
		return int(at)
	}
	if k.name == zookeeper {
		c, _, err := zk.Connect([]string{theZoo.Addr()}, long, zk.WithLogInfo(false))
		must(t, err)
		defer c.Close()
		count = func() int {
			names, _, err := c.Children("/dibs-locks/" + url.PathEscape("="+name))
			must(t, err)
			return len(names) - 1
		}
	}
	for count() != n {
		must(t, ctx.Err())
	}
}

// TestOrder lets three wait, one after the other: they get it in that order,
// and who has left is passed over.
func TestOrder(t *testing.T) {
	eachKind(t, []string{redis, zookeeper}, inOrder)
}

func inOrder(t *testing.T, k *kind) {
	ctx := patient(t)
	l := k.open(t, long)
	h, err := l.Lock(ctx, "order", lock.Options{})
	must(t, err)
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	for i := range 4 {
		mine := ctx
		if i == 1 {
			mine = leaving
		}
		wg.Go(func() {
			w, err := l.Lock(mine, "order", lock.Options{})
			if err != nil {
				if i != 1 || !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := w.Unlock(ctx); err != nil {
				t.Error(err)
			}
		})
		k.inLine(ctx, t, "order", i+1)
	}
	leave()
	k.inLine(ctx, t, "order", 3)
	must(t, h.Unlock(ctx))
	wg.Wait()
	if !slices.Equal(order, []int{0, 2, 3}) {
		t.Errorf("they got it in the order %v", order)
	}
}

// TestThousand lets 1,000 want the same lock at once.
func TestThousand(t *testing.T) {
	ctx := patient(t)
	l := openRedis(t, long)
	const many = 1000
	inside, sum := 0, 0
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			h, err := l.Lock(ctx, "thousand", lock.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			// Unguarded but for the lock: the race detector looks on.
			inside++
			if inside != 1 {
				t.Error("two have the lock")
			}
			sum++
			inside--
			if err := h.Unlock(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sum != many {
		t.Errorf("%d had it", sum)
	}
}
