package redisengine_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// step names a moment in a node's work at which it can be held.
type step string

// The steps. A step with "done" is after the call has had its effect and before
// its caller knows; the others are before the call.
const (
	settle       step = "settle"
	settled      step = "settle, done"
	loadShard    step = "load from the ledger"
	loadedShard  step = "load from the ledger, done"
	adjust       step = "adjust the stock"
	withdraw     step = "withdraw for a transfer"
	withdrawn    step = "withdraw for a transfer, done"
	settleMove   step = "settle a withdrawal for a transfer"
	settledMove  step = "settle a withdrawal for a transfer, done"
	settleAhead  step = "settle a transfer ahead"
	settledAhead step = "settle a transfer ahead, done"
	bring        step = "bring a tranche"
	brought      step = "bring a tranche, done"
	release      step = "release a claim"
	dropCommand  step = "drop a command"
	fence        step = "fence a shard"
	credit       step = "credit shares"
	credited     step = "credit shares, done"
	moved        step = "move a claim, done"
	returned     step = "return the rest, done"
	// Within Engine.Open, in what is sent to Redis: the first values of the holdings
	// come after the shard was shut, and the definition is in the last script alone.
	fillShard step = "\r\nhash\r\n"
	openShard step = "limit_first"
)

var (
	errNodeDied   = errors.New("the node has died")
	errAnswerLost = errors.New("the answer was lost")
)

// holder holds a node at a step: the call that comes to it waits, and so does
// whatever would write to the ledger or take a lease, as if the whole node stood
// still. Then the node goes on, or dies there.
type holder struct {
	mu     sync.Mutex
	at     step
	fails  step
	frozen bool
	dead   bool
	// held is closed when the node is held, goOn when it may go on, and over when the
	// call that was held has had its effect, or none.
	held, goOn, over chan struct{}
}

func newHolder() *holder {
	return &holder{held: make(chan struct{}), goOn: make(chan struct{}), over: make(chan struct{})}
}

// holdAt has the node held when it comes to a step for the next time.
func (h *holder) holdAt(s step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = s
}

// failAt has every call of a step fail until the node goes on.
func (h *holder) failAt(s step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fails = s
}

// free lets the node go on, or ends it: then every call fails from now on.
func (h *holder) free(dead bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.fails, h.frozen = "", "", false
	h.dead = h.dead || dead
	select {
	case <-h.goOn:
	default:
		close(h.goOn)
	}
}

// pass waits while the node is held, and reports whether it was held here.
func (h *holder) pass(s step) (here bool, err error) { return h.passUntil(s, nil) }

// passUntil is pass on a connection: it is refused as soon as that is closed.
func (h *holder) passUntil(s step, closed <-chan struct{}) (here bool, err error) {
	h.mu.Lock()
	if here = h.at == s && s != ""; here {
		h.at, h.frozen = "", true
		close(h.held)
	}
	wait := h.frozen
	fails := h.fails == s && s != ""
	h.mu.Unlock()
	if wait {
		select {
		case <-h.goOn:
		case <-closed:
			return here, net.ErrClosed
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.dead:
		return here, dibs.Unavail(dibs.EffectUnknown, errNodeDied)
	case fails:
		return here, dibs.Unavail(dibs.EffectNone, errAnswerLost)
	}
	return here, nil
}

// passSent is pass for what is written to Redis on a connection. The driver, once it has closed
// the connection, asks again and again whether its writer is back.
func (h *holder) passSent(p []byte, closed <-chan struct{}) error {
	h.mu.Lock()
	s := h.at
	h.mu.Unlock()
	if (s != fillShard && s != openShard) || !bytes.Contains(p, []byte(s)) {
		return nil
	}
	here, err := h.passUntil(s, closed)
	if here {
		close(h.over)
	}
	return err
}

// heldLedger is a node's ledger behind a holder.
type heldLedger struct {
	*sqlledger.Ledger
	h *holder
}

// around makes a call between two steps. The answer of a call after which the node
// was held is lost, where lost says so.
func (h *holder) around(before, after step, lost bool, call func() error) error {
	here, err := h.pass(before)
	if here {
		defer close(h.over)
	}
	if err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	here, err = h.pass(after)
	if here {
		close(h.over)
	}
	if err == nil && here && lost {
		return dibs.Unavail(dibs.EffectUnknown, errAnswerLost)
	}
	return err
}

func (l *heldLedger) Settle(ctx context.Context, batches []live.Batch) error {
	before, after := settle, settled
	if slices.ContainsFunc(batches, leaves) {
		before, after = settleMove, settledMove
	}
	return l.h.around(before, after, true, func() error { return l.Ledger.Settle(ctx, batches) })
}

func (l *heldLedger) SettleTransfer(ctx context.Context, from dibs.ShardID, epoch uint16, t dibs.Transfer, units int64) error {
	return l.h.around(settleAhead, settledAhead, true, func() error { return l.Ledger.SettleTransfer(ctx, from, epoch, t, units) })
}

// leaves reports whether a batch has units that leave a shard for another one.
func leaves(b live.Batch) bool {
	return slices.ContainsFunc(b.Entries, func(e dibs.Entry) bool {
		_, transfer := dibs.TransferOf(e.Ref)
		return transfer && e.Quantity < 0
	})
}

func (l *heldLedger) LoadShard(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, by live.Opener) (load *dibs.ShardLoad, err error) {
	err = l.h.around(loadShard, loadedShard, false, func() error {
		load, err = l.Ledger.LoadShard(ctx, c, id, by)
		return err
	})
	return load, err
}

func (l *heldLedger) CreditClaims(ctx context.Context, c *dibs.Campaign, at time.Time, most int) (n int, err error) {
	err = l.h.around(credit, credited, true, func() error {
		n, err = l.Ledger.CreditClaims(ctx, c, at, most)
		return err
	})
	return n, err
}

func (l *heldLedger) ReturnRemainder(ctx context.Context, c *dibs.Campaign, at time.Time) (home bool, err error) {
	err = l.h.around("", returned, true, func() error {
		home, err = l.Ledger.ReturnRemainder(ctx, c, at)
		return err
	})
	return home, err
}

func (l *heldLedger) Move(ctx context.Context, groups [][]dibs.Move) (to [][]dibs.Moved, err error) {
	err = l.h.around("", moved, true, func() error {
		to, err = l.Ledger.Move(ctx, groups)
		return err
	})
	return to, err
}

func (l *heldLedger) DropCommands(ctx context.Context, commands []live.Command) error {
	return l.h.around(dropCommand, "", false, func() error { return l.Ledger.DropCommands(ctx, commands) })
}

func (l *heldLedger) Fence(ctx context.Context, id dibs.ShardID, by live.Opener, seen live.ShardTotals) (t live.ShardTotals, err error) {
	err = l.h.around(fence, "", false, func() error {
		t, err = l.Ledger.Fence(ctx, id, by, seen)
		return err
	})
	return t, err
}

func (l *heldLedger) SeeServers(ctx context.Context, seen, gone []string) (elsewhere []dibs.ShardID, err error) {
	err = l.h.around("", "", false, func() error {
		elsewhere, err = l.Ledger.SeeServers(ctx, seen, gone)
		return err
	})
	return elsewhere, err
}

// heldEngine is a node's engine behind a holder.
type heldEngine struct {
	*redisengine.Engine
	h *holder
}

func (e *heldEngine) Lease(ctx context.Context, id dibs.ShardID, settled dibs.Cursor) (held bool, err error) {
	err = e.h.around("", "", false, func() error {
		held, err = e.Engine.Lease(ctx, id, settled)
		return err
	})
	return held, err
}

func (e *heldEngine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	before, after := bring, brought
	if a.Delta < 0 {
		before, after = withdraw, withdrawn
	}
	return e.h.around(adjust, "", false, func() error {
		return e.h.around(before, after, true, func() error { return e.Engine.Adjust(ctx, a) })
	})
}

func (e *heldEngine) Release(ctx context.Context, r dibs.Release) error {
	return e.h.around(release, "", false, func() error { return e.Engine.Release(ctx, r) })
}

// wire connects a node to the server that has the node's address now, until it is
// cut.
type wire struct {
	h     *holder
	mu    sync.Mutex
	to    string
	cut   bool
	conns []net.Conn
}

func (w *wire) dial(ctx context.Context, _ string) (net.Conn, error) {
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, errors.Join(errCut, conn.Close())
	}
	w.conns = append(w.conns, conn)
	return &wiredConn{Conn: conn, h: w.h, closed: make(chan struct{})}, nil
}

// moveTo has the address answered by another server from now on.
func (w *wire) moveTo(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = addr
}

func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, conn := range w.conns {
		// The driver may have closed it before.
		_ = conn.Close()
	}
}

type wiredConn struct {
	net.Conn
	h      *holder
	once   sync.Once
	closed chan struct{}
}

func (c *wiredConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *wiredConn) Write(p []byte) (int, error) {
	if err := c.h.passSent(p, c.closed); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
