package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// recheckMost is how many tokens are checked again between two beats, at least:
	// a signature takes a processor up to a tenth of a millisecond. recheckPart is
	// the part of all connections that is, at least: it takes so many beats.
	recheckMost = 200
	recheckPart = 20
)

// seenEpoch is the epoch that was seen last, and when a change to it was seen first: zero for the one in which the hub
// began. mu guards the other fields.
type seenEpoch struct {
	mu    sync.Mutex
	is    uint64
	since time.Time
}

// epoch returns the epoch of now, and since when it is. Each beat calls it.
func (h *Hub) epoch() (is uint64, since time.Time) {
	s := &h.seen
	s.mu.Lock()
	defer s.mu.Unlock()
	// The clock is read after the epoch: what was made in an earlier one was made before that time.
	if is = h.cfg.Epoch(); is != s.is {
		s.is, s.since = is, h.cfg.Now()
	}
	return s.is, s.since
}

// recheck has tokens checked again that were good in an earlier epoch, beside
// the beat, since it may read keys over the network.
func (h *Hub) recheck(conns []*conn) {
	epoch, _ := h.epoch()
	var old []*conn
	for most := max(recheckMost, len(conns)/recheckPart); len(conns) > 0 && len(old) < most; conns = conns[1:] {
		if conns[0].isOf(epoch) {
			continue
		}
		old = append(old, conns[0])
	}
	// One round at a time: keys that are slow to come would otherwise be asked for at
	// every beat.
	if len(old) == 0 || h.checking.Swap(true) {
		return
	}
	h.running.Go(func() {
		defer h.checking.Store(false)
		for _, c := range old {
			c.recheck(epoch)
		}
	})
}

// isOf reports whether there is nothing to check again.
func (c *conn) isOf(epoch uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch == epoch || c.is.User == "" || c.ending != nil || c.closed
}

var (
	tokenVoid = dibs.Text{EN: "the token is no longer valid: connect again with another one", ZH: "令牌已失效，请更换令牌后重新连接"}
	// A ticket does not say by which token it was got.
	ticketVoid = dibs.Text{EN: "tokens have changed: connect again with another ticket", ZH: "令牌密钥已变更，请获取新票据后重新连接"}
)

// recheck ends a connection whose token is good no more.
func (c *conn) recheck(epoch uint64) {
	c.mu.Lock()
	user, token := c.is.User, c.token
	c.mu.Unlock()
	if token == "" {
		c.expire(false, ticketVoid)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.hub.cfg.AuthWithin)
	defer cancel()
	now, err := c.check(ctx, token)
	if err != nil || now.User != user {
		c.expire(false, tokenVoid)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A token that came meanwhile was checked by itself, in an epoch of its own.
	if c.token == token {
		c.is, c.epoch = now, max(c.epoch, epoch)
	}
}
