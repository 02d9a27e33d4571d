package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lock"
)

// pair is a master, and its replica that has caught up.
func pair(ctx context.Context, t *testing.T) (master, replica *servers.Redis) {
	t.Helper()
	master, err := servers.StartRedis(t.TempDir(), "--repl-diskless-sync-delay", "0")
	must(t, err)
	t.Cleanup(master.Kill)
	replica, err = servers.StartRedis(t.TempDir(), "--replicaof", strings.ReplaceAll(master.Addr(), ":", " "))
	must(t, err)
	t.Cleanup(replica.Kill)
	follows(ctx, t, master)
	return master, replica
}

// follows waits until the replica has what the master has.
func follows(ctx context.Context, t *testing.T, master *servers.Redis) {
	t.Helper()
	for {
		info, err := master.Info(ctx, "replication")
		must(t, err)
		if strings.Contains(info["slave0"], "state=online") && strings.Contains(info["slave0"], "offset="+info["master_repl_offset"]+",") {
			return
		}
	}
}

func openAt(t *testing.T, r *servers.Redis, life time.Duration) lock.Locker {
	t.Helper()
	return (&kind{name: redis, at: []string{r.URL()}}).open(t, life)
}

// TestFailover kills the master and promotes its replica, which has the lock: it
// is the holder's for its lifetime there too, then somebody else's, with a higher
// fence.
func TestFailover(t *testing.T) {
	ctx := patient(t)
	master, replica := pair(ctx, t)
	before, after := openAt(t, master, 2*short), openAt(t, replica, long)
	begun := time.Now()
	h, err := before.Lock(ctx, "failover", lock.Options{})
	must(t, err)
	follows(ctx, t, master)
	master.Kill()
	_, err = replica.Do(ctx, "REPLICAOF", "NO", "ONE")
	must(t, err)
	next, err := after.Lock(ctx, "failover", lock.Options{Wait: lock.NoWait})
	// A machine that stood still may have used the lifetime up.
	if !errors.Is(err, lock.ErrBusy) && time.Since(begun) < 2*short {
		t.Errorf("right after the failover the lock is %v", err)
	}
	if err == nil {
		must(t, next.Unlock(ctx))
	}
	next, err = after.Lock(ctx, "failover", lock.Options{})
	must(t, err)
	<-h.Context().Done()
	if next.Fence() <= h.Fence() {
		t.Errorf("the fence %d comes after %d", next.Fence(), h.Fence())
	}
	if err := h.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("who held it on the lost master is told %v", err)
	}
	must(t, next.Unlock(ctx))
}

// TestFailoverForgets promotes a replica that has not heard of the lock, while
// the master goes on: two have it, and only the fence tells them apart.
func TestFailoverForgets(t *testing.T) {
	ctx := patient(t)
	master, replica := pair(ctx, t)
	before, after := openAt(t, master, long), openAt(t, replica, long)
	_, err := replica.Do(ctx, "REPLICAOF", "NO", "ONE")
	must(t, err)
	h, err := before.Lock(ctx, "forgets", lock.Options{})
	must(t, err)
	next, err := after.Lock(ctx, "forgets", lock.Options{})
	must(t, err)
	store := fenced{}
	if !store.write(next.Fence()) || store.write(h.Fence()) {
		t.Errorf("a store that compares fences takes %d after %d", h.Fence(), next.Fence())
	}
	must(t, h.Unlock(ctx))
	must(t, next.Unlock(ctx))
}

// TestGivenUp cancels many waits for a lock while the server is frozen. It answers them
// when it goes on, and the lock is free then.
func TestGivenUp(t *testing.T) {
	ctx := patient(t)
	l := openAt(t, theRedis, long)
	for range 10 {
		must(t, theRedis.Freeze())
		waiting, giveUp := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				h, err := l.Lock(waiting, "given up", lock.Options{})
				if err == nil {
					err = h.Unlock(ctx)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		<-time.After(20 * time.Millisecond)
		giveUp()
		must(t, theRedis.Thaw())
		wg.Wait()
		h, err := l.Lock(ctx, "given up", lock.Options{Wait: 10 * time.Second})
		must(t, err)
		must(t, h.Unlock(ctx))
	}
}
