package strategies

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
)

// checkThenBuy (the race) asks whether the user has an order, and
// then buys. Two presses of one user both find none.
type checkThenBuy simple

// Claim implements Attempt.
func (a checkThenBuy) Claim(ctx context.Context, user string) (Outcome, error) {
	has, err := a.SQL.has(ctx, a.SQL.db, user)
	if err != nil || has {
		return Again, err
	}
	a.at(ctx, AfterRead)
	return byStock{World: a.World}.Claim(ctx, user)
}

// userLocks are the mutexes of one process, one for each user. None is ever removed. It is safe for
// concurrent use.
type userLocks struct{ m sync.Map }

// of returns the user's mutex, always the same one.
func (l *userLocks) of(user string) *sync.Mutex {
	m, _ := l.m.LoadOrStore(user, &sync.Mutex{})
	return m.(*sync.Mutex)
}

// localLock holds a lock of this process for the user while it
// checks and buys, and until it has committed.
type localLock struct {
	done
	*World
	// nodes are processes, each with locks of its own; presses go to each in
	// turn, as a load balancer sends them.
	nodes []userLocks
	next  atomic.Uint64
}

// Claim implements Attempt.
func (a *localLock) Claim(ctx context.Context, user string) (out Outcome, err error) {
	m := a.nodes[a.next.Add(1)%uint64(len(a.nodes))].of(user)
	m.Lock()
	defer m.Unlock()
	err = a.SQL.transact(ctx, func(tx *sql.Tx) (commit bool, err error) {
		out, commit, err = a.buyOnce(ctx, tx, user)
		return commit, err
	})
	return out, err
}

// buyOnce checks and buys, in a transaction.
func (w *World) buyOnce(ctx context.Context, tx *sql.Tx, user string) (out Outcome, commit bool, err error) {
	has, err := w.SQL.has(ctx, tx, user)
	if err != nil || has {
		return Again, false, err
	}
	w.at(ctx, AfterRead)
	n, err := w.SQL.exec(ctx, tx, takeIfAny, offer)
	if err != nil || n == 0 {
		return SoldOut, false, err
	}
	return Granted, true, w.SQL.order(ctx, tx, user)
}

// earlyLock (the mistake) has the lock inside of the method that the
// transaction is around: it is given back before the commit, and the next press
// finds it free and no order yet.
type earlyLock struct {
	done
	*World
	users userLocks
}

// Claim implements Attempt.
func (a *earlyLock) Claim(ctx context.Context, user string) (out Outcome, err error) {
	err = a.SQL.transact(ctx, func(tx *sql.Tx) (commit bool, err error) {
		out, commit, err = a.locked(ctx, tx, user)
		a.at(ctx, AfterUnlock)
		return commit, err
	})
	return out, err
}

// locked holds the lock until it returns, which is before the caller commits.
func (a *earlyLock) locked(ctx context.Context, tx *sql.Tx, user string) (Outcome, bool, error) {
	m := a.users.of(user)
	m.Lock()
	defer m.Unlock()
	return a.buyOnce(ctx, tx, user)
}

// redisUserLock takes the lock from the processes to Redis: SET NX
// with a lifetime and the owner's token, given back in one step with the check
// of the owner. A caller that comes while it is held is refused.
type redisUserLock simple

// Claim implements Attempt.
func (a redisUserLock) Claim(ctx context.Context, user string) (out Outcome, err error) {
	key, token := "lab:lock:user:"+user, newToken()
	got, err := a.Redis.tryLock(ctx, key, token, lockLife)
	if err != nil || !got {
		return Busy, err
	}
	defer func() { err = errors.Join(err, a.Redis.unlock(ctx, key, token)) }()
	return checkThenBuy{World: a.World}.Claim(ctx, user)
}
