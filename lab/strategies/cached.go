package strategies

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var takeScript = script("take")

const (
	// stockKey is the cached count, and stockLife its lifetime.
	stockKey  = "lab:stock"
	stockLife = 300 * time.Second
)

// cached is the stock as a count in Redis with a lifetime, which cached-stock,
// cached-queue and cached-sum share: EXISTS, EXPIRE and INCRBY in one script, and a
// count that is not there is read from the database under one lock.
type cached struct {
	*World
}

// take takes one from the count.
func (a *cached) take(ctx context.Context) (bool, error) {
	life := strconv.FormatInt(int64(stockLife/time.Second), 10)
	for {
		left, err := a.Redis.run(ctx, takeScript, []string{stockKey}, "-1", life).AsInt64()
		if !rueidis.IsRedisNil(err) {
			return err == nil && left >= 0, err
		}
		if again, err := a.load(ctx); err != nil || !again {
			return false, err
		}
	}
}

// load brings the count into Redis, under one lock; a caller that does not get it waits a moment, and
// looks again for the count. Without the lock, a crowd that finds no count would all ask the database
// at once. again is false when the attempt is over.
func (a *cached) load(ctx context.Context) (again bool, err error) {
	const key = "lab:lock:load"
	token := newToken()
	got, err := a.Redis.tryLock(ctx, key, token, lockLife)
	if err != nil {
		return false, err
	}
	if !got {
		return a.rest(ctx)
	}
	defer func() { err = errors.Join(err, a.Redis.unlock(ctx, key, token)) }()
	left, err := a.SQL.stock(ctx, a.SQL.db)
	if err != nil {
		return false, err
	}
	// NX: somebody may have loaded it between the miss and the lock.
	err = a.Redis.do(ctx, a.Redis.c.B().Set().Key(stockKey).Value(strconv.FormatInt(left, 10)).Nx().Ex(stockLife).Build()).Error()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return err == nil, err
}

// giveBack returns one to the count when the order failed, also when ctx has ended. A crash before it
// loses one unit for good.
func (a *cached) giveBack(ctx context.Context) error {
	life := strconv.FormatInt(int64(stockLife/time.Second), 10)
	return a.Redis.run(context.WithoutCancel(ctx), takeScript, []string{stockKey}, "1", life).Error()
}

// cachedStock takes from the count and writes the database at once:
// refusals never reach the database, and every sale still waits for a commit.
type cachedStock struct {
	done
	cached
}

// Claim implements Attempt.
func (a *cachedStock) Claim(ctx context.Context, user string) (Outcome, error) {
	took, err := a.take(ctx)
	if err != nil || !took {
		return SoldOut, err
	}
	_, err = a.SQL.buyIf(ctx, user, "UPDATE lab_offers SET stock_left = stock_left - 1 WHERE id = ?", offer)
	if err != nil {
		return Busy, errors.Join(err, a.giveBack(ctx))
	}
	return Granted, nil
}
