package router

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
)

var _ dibs.SharedStore = firstStore{}

// firstStore is the store of the first deployment, and is there before that one could be
// reached. Scripts run nowhere else: a waiting room keeps an order that no other
// deployment has, and nodes that kept it in two places would admit twice as many. Values
// that are put and taken live for a moment, so any deployment will do that all nodes find.
type firstStore struct{ e *Engine }

// RunScript runs a script on the first deployment; see dibs.SharedStore. While it is away
// it is unavailable.
func (s firstStore) RunScript(ctx context.Context, text string, keys []string, args ...string) ([]any, error) {
	m := s.e.members[0]
	if m.away.Load() {
		return nil, m.refused()
	}
	return m.store().RunScript(ctx, text, keys, args...)
}

// Put keeps a value on the first deployment that answers; see dibs.SharedStore.
func (s firstStore) Put(ctx context.Context, name, value string, keep time.Duration) error {
	m := s.e.first()
	if m.away.Load() {
		return m.refused()
	}
	return m.store().Put(ctx, name, value, keep)
}

// Take takes a value from the first deployment that answers; see dibs.SharedStore. One
// that was put while another one was the first is not found.
func (s firstStore) Take(ctx context.Context, name string) (string, bool, error) {
	m := s.e.first()
	if m.away.Load() {
		return "", false, m.refused()
	}
	return m.store().Take(ctx, name)
}

// store is that of a member that is not away.
func (m *member) store() dibs.SharedStore { return m.deployment().Abilities().Store }
