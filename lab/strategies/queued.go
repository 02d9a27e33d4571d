package strategies

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// queueKey is the queue between the answer and the database.
const queueKey = "lab:queue"

// cachedQueue answers when the sale is in a queue; a consumer
// writes the database behind it, one message after the other. Between the count
// and the queue there are two commands: a process that dies there has told
// nobody, and has taken one that nobody will ever get.
type cachedQueue struct {
	cached
	// stop asks the consumer to end when nothing is left, kill at once. failed is the consumer's, and
	// may be read once it has ended.
	stop     chan struct{}
	kill     context.CancelFunc
	consumer sync.WaitGroup
	failed   error
}

func openCachedQueue(ctx context.Context, w *World) (Attempt, error) {
	a := &cachedQueue{cached: cached{w}, stop: make(chan struct{})}
	own, kill := context.WithCancel(context.WithoutCancel(ctx))
	a.kill = kill
	a.consumer.Go(func() { a.failed = a.consume(own) })
	return a, nil
}

// Claim implements Attempt.
func (a *cachedQueue) Claim(ctx context.Context, user string) (Outcome, error) {
	took, err := a.take(ctx)
	if err != nil || !took {
		return SoldOut, err
	}
	return Granted, a.Redis.do(ctx, a.Redis.c.B().Lpush().Key(queueKey).Element(user).Build()).Error()
}

// tries is how often a message is written before the consumer gives up.
const tries = 5

// write writes one sale, and again when that fails.
func (a *cachedQueue) write(ctx context.Context, user string) (err error) {
	for range tries {
		_, err = a.SQL.buyIf(ctx, user, "UPDATE lab_offers SET stock_left = stock_left - 1 WHERE id = ?", offer)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// consume writes each message until the queue is empty after the end. A message
// stays in the queue until it is written.
func (a *cachedQueue) consume(ctx context.Context) error {
	for last := false; ; {
		user, err := a.Redis.do(ctx, a.Redis.c.B().Lindex().Key(queueKey).Index(-1).Build()).ToString()
		switch {
		case rueidis.IsRedisNil(err) && last:
			return nil
		case rueidis.IsRedisNil(err):
			select {
			case <-a.stop:
				// Messages may have come since the look.
				last = true
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
			continue
		case err != nil:
			return err
		}
		if err := a.write(ctx, user); err != nil {
			return err
		}
		if err := a.Redis.do(ctx, a.Redis.c.B().Rpop().Key(queueKey).Build()).Error(); err != nil {
			return err
		}
	}
}

// Finish implements Attempt: the consumer empties the queue.
func (a *cachedQueue) Finish(ctx context.Context) error {
	defer a.kill()
	defer context.AfterFunc(ctx, a.kill)()
	close(a.stop)
	a.consumer.Wait()
	return a.failed
}

const (
	// sumMost and sumEvery are when what was added up is written.
	sumMost  = 1000
	sumEvery = 100 * time.Millisecond
)

// cachedSum adds the sales up and writes them as one `- N`, by
// number or by time, and at the end. The database has a tenth of the work; what
// is added up and not written is lost with its process. mu guards waiting; failed is the writer's,
// and may be read once it has ended. full holds one signal at most, so no caller waits to send it.
type cachedSum struct {
	cached
	mu      sync.Mutex
	waiting []string
	full    chan struct{}
	stop    chan struct{}
	writer  sync.WaitGroup
	failed  error
}

func openCachedSum(ctx context.Context, w *World) (Attempt, error) {
	a := &cachedSum{cached: cached{w}, full: make(chan struct{}, 1), stop: make(chan struct{})}
	own := context.WithoutCancel(ctx)
	a.writer.Go(func() { a.failed = a.writeAll(own) })
	return a, nil
}

// Claim implements Attempt.
func (a *cachedSum) Claim(ctx context.Context, user string) (Outcome, error) {
	took, err := a.take(ctx)
	if err != nil || !took {
		return SoldOut, err
	}
	a.mu.Lock()
	a.waiting = append(a.waiting, user)
	full := len(a.waiting) >= sumMost
	a.mu.Unlock()
	if full {
		select {
		case a.full <- struct{}{}:
		default:
		}
	}
	return Granted, nil
}

// writeAll writes when enough has come, every sumEvery, and once more at the end.
func (a *cachedSum) writeAll(ctx context.Context) error {
	tick := time.NewTicker(sumEvery)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-a.full:
		case <-tick.C:
		case <-a.stop:
			last = true
		}
		if err := a.flush(ctx); err != nil || last {
			return err
		}
	}
}

// flush takes what was added up and writes it. The lock is not held while the database works.
func (a *cachedSum) flush(ctx context.Context) error {
	a.mu.Lock()
	users := a.waiting
	a.waiting = nil
	a.mu.Unlock()
	for len(users) > 0 {
		n := min(len(users), sumMost)
		if err := a.SQL.orders(ctx, users[:n]); err != nil {
			return errors.Join(errors.New("strategies: what was added up is lost"), err)
		}
		users = users[n:]
	}
	return nil
}

// Finish implements Attempt: what was added up is written.
func (a *cachedSum) Finish(context.Context) error {
	close(a.stop)
	a.writer.Wait()
	return a.failed
}
