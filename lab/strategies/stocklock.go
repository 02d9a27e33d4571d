package strategies

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// lockLife is the usual lifetime of locks in Redis: far above what a sale takes.
const lockLife = 30 * time.Second

// newToken names an owner of a lock, so that nobody gives back a lock that another one has by now.
func newToken() string { return rand.Text() }

// stockLock has one lock around the stock: all sales of it, by
// whatever user on whatever node, are one queue of people who ask again and
// again whether it is their turn.
type stockLock simple

// Claim implements Attempt.
func (a stockLock) Claim(ctx context.Context, user string) (out Outcome, err error) {
	const key = "lab:lock:stock"
	token := newToken()
	got, err := a.Redis.lock(ctx, a.World, key, token, lockLife)
	if err != nil || !got {
		return Busy, err
	}
	defer func() { err = errors.Join(err, a.Redis.unlock(ctx, key, token)) }()
	left, err := a.SQL.stock(ctx, a.SQL.db)
	if err != nil || left < 1 {
		return SoldOut, err
	}
	_, err = a.SQL.buyIf(ctx, user, "UPDATE lab_offers SET stock_left = ? WHERE id = ?", left-1, offer)
	return Granted, err
}
