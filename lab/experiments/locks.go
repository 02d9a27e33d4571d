package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/lock"
)

// unlockScript gives a lock back if it is still the owner's, in one step.
const unlockScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// locked are the experiments with a lock in Redis.
func locked() []Experiment { return append(held(), givenBack()...) }

// held are those with how a lock is held.
func held() []Experiment {
	return []Experiment{
		{
			Group: Locks, Name: "one-lock-for-all", Claim: "One lock around the whole method makes users wait for each other who have nothing to do with each other",
			run: oneForAll,
		},
		on(Locks, "no-lifetime", "A lock without a lifetime stays for ever when its holder dies", func(a, b *conn) (Seen, error) {
			a.run("SETNX lock a")
			// The holder dies here: nothing gives the lock back.
			broken, ttl := b.run("SETNX lock b"), b.run("PTTL lock")
			b.run("DEL lock")
			a.run("SET lock a NX PX 50")
			tries, err := untilTaken(b)
			seen := Seen{
				Broken: fmt.Sprintf("SETNX: the next one gets %s, and PTTL is %s: nobody ever has it again", broken, ttl),
				Right:  fmt.Sprintf("SET NX PX 50: the next one has it after %d tries", tries),
			}
			if err != nil {
				return seen, err
			}
			return seen, check(broken == "0" && ttl == "-1", "%+v", seen)
		}),
		{
			Group: Locks, Name: "outlived", Claim: "Work that takes longer than the lock's lifetime lets a second one in; a lock that is renewed does not",
			run: outlived,
		},
		{
			Group: Locks, Name: "not-reentrant", Claim: "A lock that knows owners by request waits for itself when a method that holds it takes it again",
			run: again,
		},
	}
}

// givenBack are those with how a lock is given back.
func givenBack() []Experiment {
	return []Experiment{
		on(Locks, "deletes-anothers", "A holder that was too slow deletes the lock of the next one, and a third one is in", func(a, b *conn) (Seen, error) {
			late := func() error {
				a.run("DEL lock", "SET lock a NX PX 20")
				if _, err := untilTaken(b); err != nil {
					return err
				}
				return b.want("b", "GET", "lock")
			}
			if err := late(); err != nil {
				return Seen{}, err
			}
			a.run("DEL lock")
			broken := a.run("SET lock c NX PX 5000")
			if err := late(); err != nil {
				return Seen{}, err
			}
			kept := a.do("EVAL", unlockScript, "1", "lock", "a")
			right := a.run("SET lock c NX PX 5000")
			seen := Seen{
				Broken: "a is late, b has the lock, a deletes it, and c gets it: " + broken + " while b is inside",
				Right:  fmt.Sprintf("deleted only by its owner's name: %s, and c gets %s", kept, right),
			}
			return seen, check(broken == "OK" && kept == "0" && right == "(nil)" && b.run("GET lock") == "b", "%+v", seen)
		}),
		on(Locks, "checks-then-deletes", "To look whose the lock is and then to delete it are two steps: it can change hands between them", func(a, b *conn) (Seen, error) {
			a.run("SET lock a NX PX 60000")
			mine := a.run("GET lock")
			// The process stands still here, for its garbage collector say, until the lifetime
			// is over.
			a.run("PEXPIRE lock 20")
			if _, err := untilTaken(b); err != nil {
				return Seen{}, err
			}
			a.run("DEL lock")
			broken := a.run("EXISTS lock")
			b.run("SET lock b PX 5000")
			kept := a.do("EVAL", unlockScript, "1", "lock", "a")
			right := b.run("GET lock")
			seen := Seen{
				Broken: fmt.Sprintf("the lock said %q, was b's a moment later, and a deleted it: EXISTS %s", mine, broken),
				Right:  fmt.Sprintf("compared and deleted by one script: %s deleted, the lock is still %q", kept, right),
			}
			return seen, check(mine == "a" && broken == "0" && kept == "0" && right == "b", "%+v", seen)
		}),
	}
}

// untilTaken takes the lock as b when it is free, and returns how often it asked.
func untilTaken(b *conn) (tries int, err error) {
	for {
		tries++
		if b.run("SET lock b NX PX 5000") == "OK" {
			return tries, nil
		}
		if tries > 2_000 || !wait.Sleep(b.ctx, 5*time.Millisecond) {
			return tries, fmt.Errorf("the lock is not free after %d tries: %w", tries, b.ctx.Err())
		}
	}
}

// The work of the users of oneForAll, and how many there are.
const (
	workers  = 10
	workTime = 20 * time.Millisecond
)

// oneForAll lets users work under one lock, and each under a lock of their own.
func oneForAll(ctx context.Context, b *bench) (seen Seen, err error) {
	all, err := b.crowd(ctx, func(int) string { return "everybody" })
	if err != nil {
		return seen, err
	}
	// A machine that stands still for a moment is no proof: the best of some rounds counts.
	own := all
	for round := 0; round < 3 && own >= all; round++ {
		own, err = b.crowd(ctx, func(user int) string { return fmt.Sprint("user", user) })
		if err != nil {
			return seen, err
		}
	}
	seen = Seen{
		Broken: fmt.Sprintf("%d users with %s of work each, one lock: %d ms", workers, workTime, all.Milliseconds()),
		Right:  fmt.Sprintf("a lock for each user: %d ms", own.Milliseconds()),
	}
	// However slow the machine is, one after another takes as long as all work together.
	return seen, check(all >= workers*workTime && own < all, "%+v", seen)
}

// crowd lets all users work at once, each under the lock of a name.
func (b *bench) crowd(ctx context.Context, name func(user int) string) (time.Duration, error) {
	l, err := lock.OpenRedis(lock.RedisConfig{URL: b.url, Lifetime: time.Minute})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	var group errgroup.Group
	began := time.Now()
	for user := range workers {
		group.Go(func() error {
			h, err := l.Lock(ctx, "dibs-lab-"+name(user), lock.Options{})
			if err != nil {
				return err
			}
			wait.Sleep(ctx, workTime)
			return h.Unlock(ctx)
		})
	}
	err = group.Wait()
	return time.Since(began), err
}

// outlived works for longer than a lock lives, with a lock that runs out and with one that
// is renewed.
func outlived(ctx context.Context, b *bench) (seen Seen, err error) {
	// It is renewed three times in a life: a machine may stand still for more than a second.
	const life = 2 * time.Second
	seen, err = b.two(ctx, func(a, c *conn) (Seen, error) {
		a.run("SET lock a NX PX 50")
		tries, err := untilTaken(c)
		return Seen{Broken: fmt.Sprintf("a lock of 50 ms, and the work goes on: the next one is inside after %d tries", tries)}, err
	})
	if err != nil {
		return seen, err
	}
	l, err := lock.OpenRedis(lock.RedisConfig{URL: b.url, Lifetime: life})
	if err != nil {
		return seen, err
	}
	defer l.Close()
	h, err := l.Lock(ctx, "dibs-lab-renewed", lock.Options{})
	if err != nil {
		return seen, err
	}
	wait.Sleep(ctx, 2*life)
	if _, err := l.Lock(ctx, "dibs-lab-renewed", lock.Options{Wait: lock.NoWait}); !errors.Is(err, lock.ErrBusy) {
		return seen, check(false, "the renewed lock was taken, or failed: %v", err)
	}
	seen.Right = fmt.Sprintf("a lock of %s that is renewed, after %s: the next one waits", life, 2*life)
	return seen, h.Unlock(ctx)
}

// again takes a lock twice, as a method does that calls another one.
func again(ctx context.Context, b *bench) (seen Seen, err error) {
	seen, err = b.two(ctx, func(a, _ *conn) (Seen, error) {
		a.run("SET lock request-1 NX PX 5000")
		second := a.run("SET lock request-1 NX PX 5000")
		return Seen{Broken: "the same owner takes it again: " + second}, check(second == "(nil)", "%s", second)
	})
	if err != nil {
		return seen, err
	}
	l, err := lock.OpenRedis(lock.RedisConfig{URL: b.url, Lifetime: time.Minute})
	if err != nil {
		return seen, err
	}
	defer l.Close()
	for range 2 {
		h, err := l.Lock(ctx, "dibs-lab-again", lock.Options{Owner: "request-1", Wait: lock.NoWait})
		if err != nil {
			return seen, check(false, "the owner was refused: %v", err)
		}
		defer func() { _ = h.Unlock(context.WithoutCancel(ctx)) }()
	}
	if _, err := l.Lock(ctx, "dibs-lab-again", lock.Options{Owner: "request-2", Wait: lock.NoWait}); !errors.Is(err, lock.ErrBusy) {
		return seen, check(false, "another owner got it, or an error: %v", err)
	}
	seen.Right = "a lock that counts by owner: the owner has it twice, another one is refused"
	return seen, nil
}
