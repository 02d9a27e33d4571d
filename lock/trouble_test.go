package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/lock"
)

// childOf makes the test binary take the lock "child" there, tell its fence,
// and tell when it is lost.
const childOf = "LOCK_TEST_CHILD"

// short is a lifetime for tests that wait for its end.
const short = 600 * time.Millisecond

func child(url string) error {
	l, err := lock.OpenRedis(lock.RedisConfig{URL: url, Lifetime: short})
	if err != nil {
		return err
	}
	h, err := l.Lock(context.Background(), "child", lock.Options{})
	if err != nil {
		return err
	}
	fmt.Println(h.Fence())
	<-h.Context().Done()
	fmt.Println(errors.Is(context.Cause(h.Context()), lock.ErrLost))
	return nil
}

// startChild starts a process that holds the lock.
func startChild(t *testing.T) (cmd *exec.Cmd, fence uint64, out *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childOf+"="+theRedis.URL())
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		// It may have ended before.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	out = bufio.NewReader(pipe)
	line, err := out.ReadString('\n')
	must(t, err)
	fence, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	must(t, err)
	return cmd, fence, out
}

// TestKilledHolder kills the process that has the lock: it is free when its
// lifetime is over.
func TestKilledHolder(t *testing.T) {
	ctx := patient(t)
	l := openRedis(t, 0)
	cmd, fence, _ := startChild(t)
	must(t, cmd.Process.Kill())
	h, err := l.Lock(ctx, "child", lock.Options{})
	must(t, err)
	if h.Fence() <= fence {
		t.Errorf("the fence %d comes after %d", h.Fence(), fence)
	}
	must(t, h.Unlock(ctx))
}

// TestPausedHolder stops the process that has the lock: somebody else gets it,
// and the first one, when it goes on, is told that it has lost it. What it wrote
// in between, the fence would refuse.
func TestPausedHolder(t *testing.T) {
	ctx := patient(t)
	l := openRedis(t, 0)
	cmd, fence, out := startChild(t)
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	h, err := l.Lock(ctx, "child", lock.Options{})
	must(t, err)
	store := fenced{}
	if !store.write(h.Fence()) || store.write(fence) {
		t.Errorf("a store that compares fences takes %d after %d", fence, h.Fence())
	}
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	line, err := out.ReadString('\n')
	must(t, err)
	if strings.TrimSpace(line) != "true" {
		t.Errorf("the paused holder was told %q", line)
	}
	must(t, h.Unlock(ctx))
	_, err = io.Copy(io.Discard, out)
	must(t, err)
}

// fenced is what a lock guards: it refuses who comes with an old fence.
type fenced struct{ highest uint64 }

func (f *fenced) write(fence uint64) bool {
	if fence < f.highest {
		return false
	}
	f.highest = fence
	return true
}

// TestRenewal holds a lock for longer than its lifetime, then freezes Redis: the
// holder is told before its lifetime is over.
func TestRenewal(t *testing.T) {
	ctx := patient(t)
	l, calm := openRedis(t, short), openRedis(t, 0)
	h := renewed(ctx, t, l, calm)
	must(t, theRedis.Freeze())
	frozen := time.Now()
	select {
	case <-h.Context().Done():
	case <-ctx.Done():
		t.Error("the holder is not told")
	}
	if took := time.Since(frozen); took > 20*short {
		t.Errorf("the holder was told after %s", took)
	}
	must(t, theRedis.Thaw())
	if err := h.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("what was lost is given back: %v", err)
	}
	again, err := calm.Lock(ctx, "renewed", lock.Options{})
	must(t, err)
	must(t, again.Unlock(ctx))
}

// renewed returns a lock that was held for twice its lifetime. On a machine that
// stands still meanwhile the holder may lose it, if he is told: then it is tried
// again.
func renewed(ctx context.Context, t *testing.T, l, other *lock.Redis) lock.Held {
	t.Helper()
	for range 20 {
		h, err := l.Lock(ctx, "renewed", lock.Options{})
		must(t, err)
		next, err := other.Lock(ctx, "renewed", lock.Options{Wait: 2 * short})
		if errors.Is(err, lock.ErrBusy) {
			return h
		}
		must(t, err)
		if h.Context().Err() == nil {
			t.Fatal("somebody else has it, and the holder is not told")
		}
		must(t, next.Unlock(ctx))
	}
	t.Fatal("the lock is never renewed")
	return nil
}

// TestLostToAnother removes the lock behind the holder's back.
func TestLostToAnother(t *testing.T) {
	ctx := patient(t)
	l, calm := openRedis(t, short), openRedis(t, 0)
	h, err := l.Lock(ctx, "stolen", lock.Options{})
	must(t, err)
	_, err = theRedis.Do(ctx, "DEL", "lock:{stolen}")
	must(t, err)
	other, err := calm.Lock(ctx, "stolen", lock.Options{})
	must(t, err)
	if other.Fence() <= h.Fence() {
		t.Errorf("the fence %d comes after %d", other.Fence(), h.Fence())
	}
	<-h.Context().Done()
	if err := h.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("it ends with %v", err)
	}
	must(t, other.Unlock(ctx))
}

// TestOrder lets three wait, one after the other: they get it in that order,
// and who has left is passed over.
func TestOrder(t *testing.T) {
	ctx := patient(t)
	l := openRedis(t, 0)
	h, err := l.Lock(ctx, "order", lock.Options{})
	must(t, err)
	inLine := func(n int) {
		for {
			m, err := theRedis.Do(ctx, "ZCARD", "lock:{order}:line")
			must(t, err)
			if at, err := m.AsInt64(); err != nil || at == int64(n) {
				must(t, err)
				return
			}
		}
	}
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
		inLine(i + 1)
	}
	leave()
	inLine(3)
	must(t, h.Unlock(ctx))
	wg.Wait()
	if !slices.Equal(order, []int{0, 2, 3}) {
		t.Errorf("they got it in the order %v", order)
	}
}

// TestThousand lets 1,000 want the same lock at once.
func TestThousand(t *testing.T) {
	ctx := patient(t)
	l := openRedis(t, 0)
	const all = 1000
	inside, sum := 0, 0
	var wg sync.WaitGroup
	for range all {
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
	if sum != all {
		t.Errorf("%d had it", sum)
	}
}

// TestMinorityLost kills one of three servers: locks are held and taken on.
// With the second the holder is told, and nobody gets another.
func TestMinorityLost(t *testing.T) {
	ctx := patient(t)
	const life = 10 * short
	m := openThree(t, life)
	h, err := m.Lock(ctx, "few", lock.Options{})
	must(t, err)
	theThree[0].Kill()
	if _, err := m.Lock(ctx, "few", lock.Options{Wait: life / 2}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("with one server lost the lock is %v", err)
	}
	if h.Context().Err() != nil {
		t.Errorf("with one server lost the holder has lost it: %v", context.Cause(h.Context()))
	}
	must(t, h.Unlock(ctx))
	second, err := m.Lock(ctx, "few", lock.Options{})
	must(t, err)
	if second.Fence() <= h.Fence() {
		t.Errorf("the fence %d comes after %d", second.Fence(), h.Fence())
	}
	theThree[1].Kill()
	<-second.Context().Done()
	if err := second.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("with two servers lost it ends with %v", err)
	}
	if _, err := m.Lock(ctx, "few", lock.Options{Wait: lock.NoWait}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("with two servers lost a lock gives %v", err)
	}
	must(t, theThree[0].Start())
	must(t, theThree[1].Start())
	third, err := m.Lock(ctx, "few", lock.Options{})
	must(t, err)
	must(t, third.Unlock(ctx))
}
