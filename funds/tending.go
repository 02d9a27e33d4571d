package funds

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// packetsAtOnce is how many red packets a node tends at a time, so that one
	// that takes long does not hold the others up.
	packetsAtOnce = 4
	// packetPatience is the longest time between two attempts at a red packet that
	// does not get on. When the ledger or the engine does not answer, it is
	// outagePatience: they come back, and users wait for their money.
	packetPatience = time.Minute
	outagePatience = 5 * time.Second
)

// tending is how this node gets on with a red packet.
type tending struct {
	busy bool
	// wait is the time between the last attempt and the next one, which is at next;
	// zero while it gets on.
	wait time.Duration
	next time.Time
	// failed says that the last attempt failed, else it was too early to return the
	// remainder.
	failed bool
}

// tendings are the red packets that this node tends, or waits with.
type tendings struct {
	mu sync.Mutex
	of map[uint32]*tending
}

// take reports whether a red packet is to be tended now, and keeps it from being
// tended twice at a time. One of which the remainder waits is credited as usual.
func (ts *tendings) take(p *OpenPacket, now time.Time) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[p.Campaign.Number]
	if t == nil {
		if t = new(tending); ts.of == nil {
			ts.of = make(map[uint32]*tending)
		}
		ts.of[p.Campaign.Number] = t
	}
	if t.busy || now.Before(t.next) && (t.failed || !p.Behind) {
		return false
	}
	t.busy = true
	return true
}

// leave notes how an attempt went. It returns how long the red packet has to
// wait for the next one; zero when it gets on.
func (ts *tendings) leave(number uint32, early bool, err error, every time.Duration, now time.Time) time.Duration {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[number]
	if err == nil && !early {
		delete(ts.of, number)
		return 0
	}
	most := packetPatience
	if errors.Is(err, &dibs.Error{Reason: dibs.Unavailable}) {
		most = outagePatience
	}
	t.busy, t.failed = false, err != nil
	t.wait = max(every, min(2*t.wait, most))
	t.next = now.Add(t.wait)
	return t.wait
}

// keep forgets the red packets that are not open any more.
func (ts *tendings) keep(open []*OpenPacket) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for number, t := range ts.of {
		if !t.busy && !slices.ContainsFunc(open, func(p *OpenPacket) bool { return p.Campaign.Number == number }) {
			delete(ts.of, number)
		}
	}
}

// again lets a red packet be tended at once: what it waited for may be there.
func (ts *tendings) again(number uint32) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.of[number]; t != nil {
		t.wait, t.next = 0, time.Time{}
	}
}

// failing reports whether the last attempt at a red packet failed.
func (ts *tendings) failing(number uint32) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[number]
	return t != nil && t.failed
}

// troubled counts the red packets of which the last attempt failed, or which
// have waited for long.
func (ts *tendings) troubled() (n int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.of {
		if t.failed || t.wait >= packetPatience {
			n++
		}
	}
	return n
}

// Loop credits shares to those who claimed them, and brings home what is
// left of red packets that have ended.
func (s *Funds) Loop(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	free := make(chan struct{}, packetsAtOnce)
	for wait.Sleep(ctx, s.every) {
		open, err := s.ledger.OpenPackets(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Error("the open red packets could not be listed", "err", err)
		}
		if err == nil {
			s.packets.keep(open)
		}
		for _, p := range open {
			if !s.packets.take(p, time.Now()) {
				continue
			}
			// Those behind it wait for a place, and not for this one.
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				s.tend(ctx, p)
			})
		}
	}
}

// tend does for a red packet what there is to do, and says when it does not get
// on.
func (s *Funds) tend(ctx context.Context, p *OpenPacket) {
	c := p.Campaign
	early, err := s.tendPacket(ctx, p)
	wait := s.packets.leave(c.Number, early, err, s.every, time.Now())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Error("a red packet does not get on", "campaign", c.ID, "again_in", wait, "err", err)
	case early && wait >= lateRemainder:
		s.log.Warn("what is left of a red packet cannot go back yet", "campaign", c.ID, "again_in", wait, "in_quarantine", s.aside.CountOf(c.Number))
	}
}

// lateRemainder is the wait from which on it is worth a word that a remainder
// is not back.
const lateRemainder = 8 * time.Second

func (s *Funds) tendPacket(ctx context.Context, p *OpenPacket) (early bool, err error) {
	c := p.Campaign
	over := c.State == dibs.EndedState || !s.now().Before(c.EndsAt.Add(packetGrace))
	if !s.tends(c, over) {
		return false, nil
	}
	if p.Behind {
		if err := s.creditClaims(ctx, c); err != nil {
			return false, err
		}
	}
	if !over {
		return false, nil
	}
	return s.bringHome(ctx, p)
}

// tends reports whether this node tends a red packet: a node that settles a shard of
// it does, or the one on patrol when nobody has to; what has left the engine, any
// node. A step that is done twice counts once.
func (s *Funds) tends(c *dibs.Campaign, over bool) bool {
	if s.registry.Live(c.ID) == nil {
		return over
	}
	for _, shard := range shardsOf(c) {
		if t := s.registry.Shard(shard); t != nil && t.Settles() {
			return true
		}
	}
	return s.poller.HasFleetLease()
}

// packetProblem says why a red packet does not get on; empty while it does.
func (s *Funds) packetProblem(number uint32) dibs.Text {
	switch n := s.aside.CountOf(number); {
	case n > 0:
		return dibs.Textf("%d of its journal entries are in quarantine, and nothing goes back before they are settled: "+
			"dibs verify lists them, dibs verify --repair tries them again",
			"有 %d 条日志记录处于隔离中，结算之前余款不会退回：dibs verify 可列出，dibs verify --repair 可重试", n)
	case s.packets.failing(number):
		return dibs.Text{
			EN: "crediting its shares or returning the rest has failed and is tried again; the log of the node says why",
			ZH: "份额入账或余款退回失败，正在重试，原因见节点的运行日志",
		}
	}
	return dibs.Text{}
}
