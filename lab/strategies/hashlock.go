package strategies

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/rueidis"
)

var deductScript = script("deduct")

// The campaign's hash, and the field of its stock.
const (
	campaignKey = "lab:campaign"
	amountField = "amount"
)

// hashLock keeps the campaign in a hash, takes its stock
// by a script, and holds a lock for the user from then on, which outlives the
// sale. Its stock is never sold twice. But who does not get the lock falls
// through to the end of the method and is told yes; and an order that fails
// gives neither lock nor stock back.
type hashLock struct {
	done
	*World
	// repaired refuses a caller that does not get the lock, and gives stock and lock back.
	repaired bool
}

// openHashLock puts the campaign into its hash, with the stock.
func openHashLock(repaired bool) func(context.Context, *World) (Attempt, error) {
	return func(ctx context.Context, w *World) (Attempt, error) {
		err := w.Redis.do(ctx, w.Redis.c.B().Hset().Key(campaignKey).FieldValue().
			FieldValue(amountField, strconv.FormatInt(w.Stock, 10)).FieldValue("is_valid", "1").Build()).Error()
		return hashLock{World: w, repaired: repaired}, err
	}
}

// Claim implements Attempt.
func (a hashLock) Claim(ctx context.Context, user string) (Outcome, error) {
	campaign, err := a.Redis.do(ctx, a.Redis.c.B().Hgetall().Key(campaignKey).Build()).AsStrMap()
	if err != nil || campaign["is_valid"] != "1" || campaign[amountField] == "0" {
		return SoldOut, err
	}
	has, err := a.SQL.has(ctx, a.SQL.db, user)
	if err != nil || has {
		return Again, err
	}
	a.at(ctx, AfterRead)
	key, token := "lab:lock:user:"+user, newToken()
	got, err := a.Redis.tryLock(ctx, key, token, lockLife)
	if err != nil {
		return Busy, err
	}
	if !got {
		if a.repaired {
			return Again, nil
		}
		return Granted, nil
	}
	return a.buy(ctx, user, key, token)
}

// buy takes one by the script and writes the order. had is what the script found, before it took one.
func (a hashLock) buy(ctx context.Context, user, key, token string) (Outcome, error) {
	had, err := a.Redis.run(ctx, deductScript, []string{campaignKey}, amountField).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return Busy, err
	}
	if had < 1 {
		if a.repaired {
			return SoldOut, a.Redis.unlock(ctx, key, token)
		}
		return SoldOut, nil
	}
	// The stock is in Redis only, as in the usual way: the database follows at the end.
	err = a.SQL.order(ctx, a.SQL.db, user)
	if err == nil || !a.repaired {
		return Granted, err
	}
	back := a.Redis.do(context.WithoutCancel(ctx), a.Redis.c.B().Hincrby().Key(campaignKey).Field(amountField).Increment(1).Build()).Error()
	return Busy, errors.Join(err, back, a.Redis.unlock(ctx, key, token))
}
