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
	// packetsAtOnce is how many red packets a node works on at a time, so that one
	// that takes long does not hold the others up.
	packetsAtOnce = 4
	// packetPatience is the longest time between two attempts at a red packet that
	// does not get on. When the ledger or the engine does not answer, it is
	// outagePatience: they come back, and users wait for their money.
	packetPatience = time.Minute
	outagePatience = 5 * time.Second
)

// packetWork is how far this node is with one red packet.
type packetWork struct {
	busy bool
	// wait is the time between the last attempt and the next one, which is at next;
	// zero while it gets on.
	wait time.Duration
	next time.Time
	// failed says that the last attempt failed, else it was too early to return the
	// remainder.
	failed bool
}

// packetQueue has the red packets that this node works on, or tries again later.
//
// mu guards every field, and is held for no question to ledger or engine. At most one
// goroutine works on a red packet: the one for which take returned true, until leave.
type packetQueue struct {
	mu sync.Mutex
	of map[uint32]*packetWork
}

// take reports whether a red packet is to be worked on now, and keeps it from being
// worked on twice at a time. One of which the remainder waits is credited as usual.
func (q *packetQueue) take(p *OpenPacket, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.of[p.Campaign.Number]
	if t == nil {
		if t = new(packetWork); q.of == nil {
			q.of = make(map[uint32]*packetWork)
		}
		q.of[p.Campaign.Number] = t
	}
	if t.busy || now.Before(t.next) && (t.failed || !p.Behind) {
		return false
	}
	t.busy = true
	return true
}

// leave notes how an attempt went. It returns how long the red packet has to
// wait for the next one; zero when it gets on.
func (q *packetQueue) leave(number uint32, early bool, err error, every time.Duration, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.of[number]
	if err == nil && !early {
		delete(q.of, number)
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
func (q *packetQueue) keep(open []*OpenPacket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for number, t := range q.of {
		if !t.busy && !slices.ContainsFunc(open, func(p *OpenPacket) bool { return p.Campaign.Number == number }) {
			delete(q.of, number)
		}
	}
}

// retryNow lets a red packet be worked on at once: what it waited for may be there.
func (q *packetQueue) retryNow(number uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.of[number]; t != nil {
		t.wait, t.next = 0, time.Time{}
	}
}

// failing reports whether the last attempt at a red packet failed.
func (q *packetQueue) failing(number uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.of[number]
	return t != nil && t.failed
}

// troubled counts the red packets of which the last attempt failed, or which
// have waited for long.
func (q *packetQueue) troubled() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.of {
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
		switch {
		case err == nil:
			s.trouble.Over("list", "the open red packets can be listed again")
			s.packets.keep(open)
		case ctx.Err() == nil:
			s.trouble.Is("list", "the open red packets could not be listed", err)
		}
		for _, p := range open {
			if !s.packets.take(p, time.Now()) {
				continue
			}
			// Those behind it wait for a place, and not for this one.
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				s.process(ctx, p)
			})
		}
	}
}

// process credits a red packet's shares and returns its rest, as far as they are due, and
// logs when that fails.
func (s *Funds) process(ctx context.Context, p *OpenPacket) {
	c := p.Campaign
	early, err := s.creditAndReturn(ctx, p)
	wait := s.packets.leave(c.Number, early, err, s.every, time.Now())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Error("a red packet does not get on", "campaign", c.ID, "again_in", wait, "err", err)
	case early && wait >= lateRemainder:
		s.log.Warn("what is left of a red packet cannot go back yet", "campaign", c.ID, "again_in", wait, "in_quarantine", s.quarantine.CountOf(c.Number))
	}
}

// lateRemainder is the wait from which on it is worth a word that a remainder
// is not back.
const lateRemainder = 8 * time.Second

func (s *Funds) creditAndReturn(ctx context.Context, p *OpenPacket) (early bool, err error) {
	c := p.Campaign
	over := c.State == dibs.EndedState || !s.now().Before(c.EndsAt.Add(packetGrace))
	if !s.handles(c, over) {
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
	return s.returnRemainder(ctx, p)
}

// handles reports whether this node takes care of a red packet: a node that settles a shard
// of it does, or the holder of the fleet lease when no node settles; what has left the
// engine, any node. A step that is done twice counts once.
func (s *Funds) handles(c *dibs.Campaign, over bool) bool {
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
	switch n := s.quarantine.CountOf(number); {
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
