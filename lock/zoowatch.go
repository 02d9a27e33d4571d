package lock

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
)

// watches are the nodes that a session watches. Neither ZooKeeper's client nor, with
// it, its server can take a watch back: whoever waits for a node shares the one
// that is there, so that those who wait no longer leave nothing behind that grows.
// mu guards the map. A watch is in it until its node or the locker is gone.
type watches struct {
	mu sync.Mutex
	of map[string]*watched
}

// watched is a node that is being watched.
type watched struct {
	// set is closed when gone, or err, is known.
	set  chan struct{}
	gone <-chan zk.Event
	err  error
}

// watched returns the watch of a node, a new one where there is none; nil when the
// locker is closed.
func (z *ZooKeeper) watched(path string) *watched {
	z.watches.mu.Lock()
	defer z.watches.mu.Unlock()
	if w := z.watches.of[path]; w != nil {
		return w
	}
	w := &watched{set: make(chan struct{})}
	if !z.calls.start(func() { z.watch(path, w) }) {
		return nil
	}
	z.watches.of[path] = w
	return w
}

// watch watches a node until it is gone, or the session is.
func (z *ZooKeeper) watch(path string, w *watched) {
	// Not ExistsW, which would watch for ever for what is gone already.
	_, _, w.gone, w.err = z.s.conn.GetW(path)
	close(w.set)
	if w.err == nil {
		select {
		case <-w.gone:
		case <-z.quit:
		}
	}
	z.watches.mu.Lock()
	defer z.watches.mu.Unlock()
	delete(z.watches.of, path)
}

// watch returns when the node is gone, or something else is to be looked at.
func (n *zooNode) watch(ctx context.Context, name string) error {
	w := n.z.watched(n.dir + "/" + name)
	if w == nil {
		return errClosed
	}
	select {
	case <-w.set:
	case <-ctx.Done():
		return ctx.Err()
	}
	if errors.Is(w.err, zk.ErrNoNode) {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	// All who wait are told of it: the client closes the channel behind the event.
	select {
	case <-w.gone:
		return nil
	case <-n.z.quit:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
