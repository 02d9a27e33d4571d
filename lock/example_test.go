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

// An owner who is named has a lock as often as he asks.
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
