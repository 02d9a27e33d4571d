package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// renewEvery is the time between two looks at the keys in the ledger, and so how long one node may know a new key
	// that another one does not.
	renewEvery = 2 * time.Second
	// oldKeysFor is how long tickets and admissions of the key before are good: clients that hold one need not notice.
	oldKeysFor = time.Minute
)

// renewals looks whether keys that dibs has made are made anew, which `dibs ledger renew-keys` asks for, and gives them
// to those that use them. mu guards watched.
type renewals struct {
	secret func(ctx context.Context, name string, size int) ([]byte, error)
	log    *slog.Logger

	mu      sync.Mutex
	watched []*watchedKey

	stop    context.CancelFunc
	running sync.WaitGroup
}

// watchedKey is a key in the ledger; use is called with each other one. Only the loop changes current.
type watchedKey struct {
	name    string
	current []byte
	use     func(key []byte) error
}

// WatchKey calls use when the key of a name in the ledger is not current any more, within seconds, until the node is
// closed. An error of use is logged, and use is called again. Calls come one after the other.
func (n *Node) WatchKey(name string, current []byte, use func(key []byte) error) {
	n.renewals.mu.Lock()
	defer n.renewals.mu.Unlock()
	n.renewals.watched = append(n.renewals.watched, &watchedKey{name, current, use})
}

// startRenewals has the node use keys that are made anew.
func (n *Node) startRenewals(cfg *Config) {
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	n.renewals.secret, n.renewals.log = n.Ledger.Secret, cfg.Service.Logger
	n.WatchKey("gate", n.gateKey, func(key []byte) error {
		until := now().Add(oldKeysFor)
		return errors.Join(n.Tickets.SetKey(key, until), n.Rooms.SetKey(key, until))
	})
	n.WatchKey("limit", n.limitKey, n.Limits.SetKey)
	ctx, stop := context.WithCancel(context.Background())
	n.renewals.stop = stop
	n.renewals.running.Go(func() {
		for wait.Sleep(ctx, renewEvery) {
			n.renewals.look(ctx)
		}
	})
}

// close ends the looks.
func (r *renewals) close() {
	if r.stop != nil {
		r.stop()
		r.running.Wait()
	}
}

// look reads each key, and makes it where it is gone: of several nodes, one makes it for all.
func (r *renewals) look(ctx context.Context) {
	r.mu.Lock()
	watched := r.watched
	r.mu.Unlock()
	for _, w := range watched {
		key, err := r.secret(ctx, w.name, len(w.current))
		// The ledger may be away, which others notice and tell; the keys in use stay.
		if err != nil || bytes.Equal(key, w.current) {
			continue
		}
		if err := w.use(key); err != nil {
			r.log.Warn("a key of the ledger was made anew and cannot be used; the earlier one stays in effect", "key", w.name, "err", err)
			continue
		}
		w.current = key
		r.log.Info("a key of the ledger was made anew, and is in use", "key", w.name)
	}
}

// readKeys reads the keys that gates and limits are made with.
func (n *Node) readKeys(ctx context.Context) (err error) {
	if n.gateKey, err = n.Ledger.Secret(ctx, "gate", gateKeySize); err != nil {
		return fmt.Errorf("node: reading the key of tickets: %w", err)
	}
	if n.limitKey, err = n.Ledger.Secret(ctx, "limit", limit.KeySize); err != nil {
		return fmt.Errorf("node: reading the key of limits: %w", err)
	}
	return nil
}
