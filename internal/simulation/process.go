package simulation

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/redpacket"

	"github.com/dibs-dev/dibs/node"
)

// site is where a node runs, again after each crash: its machine, its clock, its
// place in the network.
//
// mu guards what stands below it. At most one process runs at a site: spawn makes one
// only where there is none.
type site struct {
	w    *world
	name string
	skew time.Duration

	mu sync.Mutex
	// runs counts the processes that ran here.
	runs int
	// p is the one that runs now; nil for none. wanted says that there should be one.
	p      *process
	wanted bool
	// at is the server that the node talks to; cut says that it reaches none.
	at  *server
	cut bool
	// thaw is until when the process stands still.
	thaw time.Time
}

// process is one run of a node.
//
// dead is closed once, and ends every wait of the process. serves is guarded by the
// mutex of its site; all else is set before it starts.
type process struct {
	w    *world
	site *site
	name string
	dead chan struct{}
	die  sync.Once
	// begun is closed when it has started, or failed to.
	begun chan struct{}
	eng   *engine
	led   *ledger
	svc   *node.Service
	// serves is set once it answers claims.
	serves bool
}

// now is the clock of the node.
func (s *site) now() time.Time { return s.w.now().Add(s.skew) }

// way returns the server that the node talks to, and whether it answers. A server
// that is frozen gets what it is sent.
func (s *site) way() (v *server, open bool) {
	s.mu.Lock()
	v, cut := s.at, s.cut
	s.mu.Unlock()
	if cut || v == nil {
		return nil, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.down {
		return nil, false
	}
	return v, !v.frozen
}

// running returns the process that serves here; nil for none.
func (s *site) running() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p == nil || !s.p.serves {
		return nil
	}
	return s.p
}

// wait passes time for a process: longer while it stands still, shorter when it dies
// or ctx ends. errDead means that the process is gone; the cause of ctx that its
// caller gave up. Once the time is over it waits until the process thaws, whatever ctx
// says by then.
func (p *process) wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.dead:
		return errDead
	}
	for {
		p.site.mu.Lock()
		rest := time.Until(p.site.thaw)
		p.site.mu.Unlock()
		if rest <= 0 {
			return nil
		}
		select {
		case <-time.After(rest):
		case <-p.dead:
			return errDead
		}
	}
}

// isDead reports whether the process has died.
func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// begin starts a process at a site, again and again until one serves.
// It may be called while a process runs; then nothing happens.
func (s *site) begin() {
	s.mu.Lock()
	s.wanted = true
	s.mu.Unlock()
	s.w.running.Go(func() {
		for !s.w.over.Load() {
			p := s.spawn()
			if p == nil {
				return
			}
			err := p.svc.Start(s.w.ctx)
			close(p.begun)
			if err == nil {
				s.mu.Lock()
				p.serves = true
				s.mu.Unlock()
				s.w.story.tell("%s serves", p.name)
				return
			}
			s.w.story.tell("%s does not start: %v", p.name, err)
			s.end(p)
			<-time.After(time.Second)
		}
	})
}

// spawn makes the next process; nil when there is to be none, or is one.
func (s *site) spawn() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted || s.p != nil {
		return nil
	}
	s.runs++
	p := &process{w: s.w, site: s, name: s.name + "." + string(rune('a'+(s.runs-1)%26)), dead: make(chan struct{}), begun: make(chan struct{})}
	p.eng, p.led = newEngine(p), newLedger(p)
	cfg := s.w.plan.service
	cfg.Engine, cfg.Ledger, cfg.IDs, cfg.Now = p.eng, p.led.Parts(), s.w.base.ids, s.now
	cfg.Logger = slog.New(newLogHandler(s.w.story, p.name))
	cfg.Split = func(spec dibs.RedPacketSpec) ([]int64, error) { return redpacket.Split(spec, nil) }
	svc, err := node.NewService(cfg)
	if err != nil {
		s.w.broken("a node cannot be made: %v", err)
		return nil
	}
	p.svc = svc
	s.p = p
	return p
}

// end ends a process without a word, as the death of its machine does.
// Close gets a context that is over, so that the node's goroutines end without giving
// anything back: leases run out, as those of a dead machine do.
func (s *site) end(p *process) {
	p.die.Do(func() { close(p.dead) })
	s.mu.Lock()
	if s.p == p {
		s.p = nil
	}
	s.mu.Unlock()
	s.w.running.Go(func() {
		<-p.begun
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.svc.Close(gone)
	})
}

// mayDie ends a process in the middle of something, which is started again later;
// false when it lives on.
func (s *site) mayDie(p *process, dies bool, op string) bool {
	if !dies || s.w.calm.Load() || p.isDead() {
		return p.isDead()
	}
	s.w.story.tell("%s dies at: %s", p.name, op)
	s.end(p)
	s.w.after(time.Second, s.begin)
	return true
}

// crash kills what runs here; it is not started again before begin.
func (s *site) crash() {
	s.mu.Lock()
	p := s.p
	s.wanted = false
	s.mu.Unlock()
	if p != nil {
		s.w.story.tell("%s is killed", p.name)
		s.end(p)
	}
}

// freeze makes what runs at a site stand still.
func (s *site) freeze(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thaw = time.Now().Add(d)
}

func (s *site) cutOff(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

func (s *site) move(to *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = to
}
