package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/wait"
)

// listener hears on one connection, for all who wait at a locker, whose turn it
// is. It connects when the first one waits.
//
// mu guards what stands below it. A channel in waiting has room for one value, so a
// turn that comes before the waiter looks is not lost. quit is set once, before stop
// is closed.
type listener struct {
	c       rueidis.Client
	channel string

	mu      sync.Mutex
	waiting map[string]chan struct{}
	// ready is closed while the channel is heard; nil before the first wait.
	ready chan struct{}
	stop  chan struct{}
	ended sync.WaitGroup
	quit  bool
}

var errClosed = errors.New("lock: the locker is closed")

func (l *listener) start(c rueidis.Client, channel string) {
	l.c, l.channel = c, channel
	l.waiting, l.stop = map[string]chan struct{}{}, make(chan struct{})
}

// expect returns a channel that gets a value when it is the token's turn, or when that
// may have been missed. The caller takes its place in the line only after it returned:
// a turn that came before would be heard by nobody.
func (l *listener) expect(ctx context.Context, token string) (turn <-chan struct{}, done func(), err error) {
	l.mu.Lock()
	if l.quit {
		l.mu.Unlock()
		return nil, nil, errClosed
	}
	if l.ready == nil {
		l.ready = make(chan struct{})
		l.ended.Go(l.listen)
	}
	ready := l.ready
	ch := make(chan struct{}, 1)
	l.waiting[token] = ch
	l.mu.Unlock()
	done = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, token)
	}
	select {
	case <-ready:
		return ch, done, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.stop:
		err = errClosed
	}
	done()
	return nil, nil, err
}

// pause is how long the listener waits before it connects again.
const pause = 50 * time.Millisecond

func (l *listener) listen() {
	for {
		l.hear()
		select {
		case <-l.stop:
			return
		case <-time.After(pause):
		}
	}
}

// hear listens until the connection is lost.
func (l *listener) hear() {
	d, release := l.c.Dedicate()
	defer release()
	lost := d.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { l.wake(m.Message) },
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" {
				l.heard()
			}
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	err := d.Do(ctx, d.B().Subscribe().Channel(l.channel).Build()).Error()
	cancel()
	if err == nil {
		select {
		case <-lost: //nolint:errcheck // how it was lost says nothing
		case <-l.stop:
			d.Close()
			<-lost //nolint:errcheck // it was closed here
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ready:
		l.ready = make(chan struct{})
	default:
	}
}

// heard lets those wait who came meanwhile, and lets all ask again: their turn
// may have come while nobody listened.
func (l *listener) heard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ready:
	default:
		close(l.ready)
	}
	for _, ch := range l.waiting {
		wait.Kick(ch)
	}
}

func (l *listener) wake(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ch := l.waiting[token]; ch != nil {
		wait.Kick(ch)
	}
}

func (l *listener) close() {
	l.mu.Lock()
	l.quit = true
	l.mu.Unlock()
	close(l.stop)
	l.ended.Wait()
}
