package access

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// requestKeep is how long answers of admin requests are remembered.
const requestKeep = 48 * time.Hour

// requestGate lets one request of a caller's key run at a time on this node.
//
// mu guards running, which has an entry for each request under way, and is not held while
// a request runs or waits. The entry's channel is closed after the entry was removed.
type requestGate struct {
	mu      sync.Mutex
	running map[[2]string]chan struct{}
}

// enter returns when nobody else runs the pair, and its exit.
func (g *requestGate) enter(ctx context.Context, caller, key string) (exit func(), err error) {
	id := [2]string{caller, key}
	for {
		g.mu.Lock()
		other, busy := g.running[id]
		if !busy {
			done := make(chan struct{})
			g.running[id] = done
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				delete(g.running, id)
				g.mu.Unlock()
				close(done)
			}, nil
		}
		g.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, dibs.Unavail(dibs.EffectUnknown, ctx.Err())
		}
	}
}

// Remember runs an admin request once per caller and idempotency key: a repeat
// with the same hash returns the first answer and true, one with another hash
// is ErrKeyReused. Answers with a status of 500 or above are not remembered.
func (s *Access) Remember(ctx context.Context, caller, key string, hash []byte,
	do func() (status int, body []byte, err error),
) (StoredRequest, bool, error) {
	exit, err := s.requests.enter(ctx, caller, key)
	if err != nil {
		return StoredRequest{}, false, err
	}
	defer exit()
	old, err := s.ledger.Request(ctx, caller, key)
	switch {
	case err == nil && !bytes.Equal(old.Hash, hash):
		return StoredRequest{}, false, dibs.ErrKeyReused
	case err == nil:
		return *old, true, nil
	case !errors.Is(err, dibs.ErrNotFound):
		// A request of before, by the same key, may have been done.
		return StoredRequest{}, false, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	status, body, err := do()
	if err != nil {
		return StoredRequest{}, false, err
	}
	r := StoredRequest{Caller: caller, Key: key, Hash: hash, Status: status, Body: body, At: dibs.Ms(s.now())}
	if status >= 500 {
		return r, false, nil
	}
	// The caller may have gone: the answer is remembered all the same, since the caller will repeat the request.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ledgerTimeout)
	defer cancel()
	if err := s.ledger.SaveRequest(saving, &r); err != nil && !errors.Is(err, dibs.ErrAlreadyExists) {
		// The change is made; only a repeat would not know. Say so to operators.
		s.log.Error("an admin answer was not remembered", "err", err)
	}
	return r, false, nil
}
