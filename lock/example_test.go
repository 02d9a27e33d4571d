package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lock"
)

// Work under a lock on Redis: its context ends when the lock is lost, and its
// fence is what a store compares.
func ExampleOpenRedis() {
	ctx := context.Background()
	locker, err := lock.OpenRedis(lock.RedisConfig{URL: theRedis.URL(), Lifetime: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	held, err := locker.Lock(ctx, "report", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("may work:", held.Context().Err() == nil, "fence:", held.Fence() > 0)
	_, err = locker.Lock(ctx, "report", lock.Options{Wait: 10 * time.Millisecond})
	fmt.Println("somebody else:", errors.Is(err, lock.ErrBusy))
	fmt.Println("given back:", held.Unlock(ctx))
	// Output:
	// may work: true fence: true
	// somebody else: true
	// given back: <nil>
}

// An owner with a name has a lock as often as it asks.
func ExampleOptions_owner() {
	ctx := context.Background()
	locker, err := lock.OpenRedis(lock.RedisConfig{URL: theRedis.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	outer, err := locker.Lock(ctx, "order-42", lock.Options{Owner: "request-7"})
	fmt.Println(err)
	inner, err := locker.Lock(ctx, "order-42", lock.Options{Owner: "request-7"})
	fmt.Println(err)
	fmt.Println(inner.Unlock(ctx), outer.Unlock(ctx))
	// Output:
	// <nil>
	// <nil>
	// <nil> <nil>
}

// Readers share a lock, writers do not.
func ExampleOptions_shared() {
	ctx := context.Background()
	locker, err := lock.OpenRedis(lock.RedisConfig{URL: theRedis.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	a, err := locker.Lock(ctx, "price", lock.Options{Shared: true})
	fmt.Println(err)
	b, err := locker.Lock(ctx, "price", lock.Options{Shared: true})
	fmt.Println(err)
	_, err = locker.Lock(ctx, "price", lock.Options{Wait: lock.NoWait})
	fmt.Println(err)
	fmt.Println(a.Unlock(ctx), b.Unlock(ctx))
	// Output:
	// <nil>
	// <nil>
	// lock: it is held by somebody else
	// <nil> <nil>
}

// A lock on most of three servers that know nothing of each other.
func ExampleOpenMajority() {
	ctx := context.Background()
	locker, err := lock.OpenMajority(lock.RedisConfig{}, theThree[0].URL(), theThree[1].URL(), theThree[2].URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	held, err := locker.Lock(ctx, "report", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held.Unlock(ctx))
	// Output: <nil>
}

// The same on a database, which keeps the lock for a connection.
func ExampleOpenSQL() {
	ctx := context.Background()
	server, err := servers.Postgres()
	if err != nil {
		fmt.Println(err)
		return
	}
	url, _, done, err := server.Database()
	if err != nil {
		fmt.Println(err)
		return
	}
	locker, err := lock.OpenSQL(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	held, err := locker.Lock(ctx, "report", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held.Fence(), held.Unlock(ctx))
	fmt.Println(errors.Join(locker.Close(), done()))
	// Output:
	// 1 <nil>
	// <nil>
}

// The same on ZooKeeper, as the node with the lowest number.
func ExampleOpenZooKeeper() {
	ctx := context.Background()
	locker, err := lock.OpenZooKeeper(ctx, lock.ZooKeeperConfig{URL: theZoo.URL(), Lifetime: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	first, err := locker.Lock(ctx, "report", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first.Unlock(ctx))
	second, err := locker.Lock(ctx, "report", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(second.Fence() > first.Fence(), second.Unlock(ctx))
	// Output:
	// <nil>
	// true <nil>
}

// The guarded resource refuses a holder with an older fence: a holder that
// was paused cannot know that it has lost the lock.
func ExampleHeld_fence() {
	ctx := context.Background()
	locker, err := lock.OpenRedis(lock.RedisConfig{URL: theRedis.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	var highest uint64
	store := func(fence uint64) bool {
		if fence < highest {
			return false
		}
		highest = fence
		return true
	}
	var fences []uint64
	for range 2 {
		held, err := locker.Lock(ctx, "file", lock.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fences = append(fences, held.Fence())
		if err := held.Unlock(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("the second writes:", store(fences[1]))
	fmt.Println("the first, late:", store(fences[0]))
	// Output:
	// the second writes: true
	// the first, late: false
}

// The context of what is held ends when the lock is lost, here because somebody
// removed it; work that must not go on without it runs under that context.
func ExampleHeld_context() {
	ctx := context.Background()
	locker, err := lock.OpenRedis(lock.RedisConfig{URL: theRedis.URL(), Lifetime: 300 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	held, err := locker.Lock(ctx, "work", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := theRedis.Do(ctx, "DEL", "lock:{work}"); err != nil {
		fmt.Println(err)
		return
	}
	<-held.Context().Done()
	fmt.Println(errors.Is(context.Cause(held.Context()), lock.ErrLost))
	fmt.Println(held.Unlock(ctx))
	// Output:
	// true
	// lock: it was lost
}

// A caller that does not want to wait tries once, or for a time. Waiters are woken
// in the order of arrival.
func ExampleOptions_wait() {
	ctx := context.Background()
	locker, err := lock.OpenRedis(lock.RedisConfig{URL: theRedis.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	held, err := locker.Lock(ctx, "door", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Lock(ctx, "door", lock.Options{Wait: lock.NoWait})
	fmt.Println("once:", err)
	_, err = locker.Lock(ctx, "door", lock.Options{Wait: 20 * time.Millisecond})
	fmt.Println("for a time:", err)
	next := make(chan error)
	go func() {
		after, err := locker.Lock(ctx, "door", lock.Options{})
		if err == nil {
			err = after.Unlock(ctx)
		}
		next <- err
	}()
	fmt.Println("given back:", held.Unlock(ctx))
	fmt.Println("the next one:", <-next)
	// Output:
	// once: lock: it is held by somebody else
	// for a time: lock: it is held by somebody else
	// given back: <nil>
	// the next one: <nil>
}

// GET_LOCK of MySQL and MariaDB: the lock ends with its connection.
func ExampleOpenSQL_mySQL() {
	ctx := context.Background()
	server, err := servers.MariaDB()
	if err != nil {
		fmt.Println(err)
		return
	}
	url, _, done, err := server.Database()
	if err != nil {
		fmt.Println(err)
		return
	}
	locker, err := lock.OpenSQL(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	held, err := locker.Lock(ctx, "report", lock.Options{Owner: "request-7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held.Fence(), held.Unlock(ctx))
	fmt.Println(errors.Join(locker.Close(), done()))
	// Output:
	// 1 <nil>
	// <nil>
}
