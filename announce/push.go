package announce

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// pushEvery is how often announcements are looked for that other nodes have
	// begun, or left.
	pushEvery = time.Second
	// pushLease is how long a node keeps an announcement without a word.
	pushLease = 2 * time.Second
	// pushersAtOnce is of how many announcements a node enqueues followers at a time, and
	// pushesListed how many it works on.
	pushersAtOnce = 4
	pushesListed  = 100
	// tellPushesEvery is how often a node looks for what its clients are to be told.
	tellPushesEvery = 250 * time.Millisecond
	// pushesRead is how many events of announcements are read at a time.
	pushesRead = 32
)

// pushing is what a node does for announcements.
//
// mu guards busy: an announcement is in it while one goroutine of this node works on it.
// tellMu guards tell, next and row, and is held while watchers are called, so that none is
// called after its stop returned. Neither is taken while the other is held.
type pushing struct {
	// owner names this process in leases.
	owner string
	kick  chan struct{}
	mu    sync.Mutex
	// busy are those that this node works on.
	busy map[string]bool
	// numbers are shown by Observe.
	numbers pushNumbers

	tellMu sync.Mutex
	// tell are told of pushes, by number, from a row of the feed on; -1 while it is not
	// known.
	tell map[int]func(*events.Push)
	next int
	row  int64
}

// loop enqueues the followers of announcements that run.
func (s *Announcements) loop(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	free := make(chan struct{}, pushersAtOnce)
	for wait.SleepOr(ctx, pushEvery, s.pushing.kick) {
		running, err := s.cfg.Ledger.RunningAnnouncements(ctx, pushesListed)
		if err != nil {
			// That the ledger does not answer is said elsewhere.
			continue
		}
		s.pushing.numbers.see(running)
		for i := range running {
			a := &running[i]
			if !s.pushing.begin(a.ID) {
				continue
			}
			all.Go(func() {
				defer s.pushing.end(a.ID)
				s.push(ctx, free, a)
			})
		}
	}
}

func (p *pushing) begin(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := !p.busy[id]
	p.busy[id] = true
	return free
}

func (p *pushing) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, id)
}

// push works on an announcement until it does not run any more, or another
// node has it. Between its turns it leaves its place in free to others, which may have few
// followers.
func (s *Announcements) push(ctx context.Context, free chan struct{}, a *Announcement) {
	defer s.trouble.Forget(a.ID)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		pause, err := s.pushTurn(ctx, a.ID, a.Campaign)
		<-free
		switch {
		case errors.Is(err, ErrPushTaken):
			// Another node that has it keeps it: it is not asked for again before a lease may have ended.
			wait.Sleep(ctx, pushLease)
			return
		case errors.Is(err, dibs.ErrNotFound):
			return
		case err != nil && ctx.Err() == nil:
			s.pushing.numbers.turn(a, 0, err)
			s.trouble.Is(a.ID, "an announcement waits: followers could not be enqueued", err, "announcement", a.ID)
			pause = pushEvery
		case err == nil:
			s.trouble.Over(a.ID, "an announcement goes on", "announcement", a.ID)
		}
		if !wait.Sleep(ctx, pause) {
			return
		}
	}
}

// pushTurn enqueues some followers and returns how long to wait for the next.
func (s *Announcements) pushTurn(ctx context.Context, id string, campaign uint32) (time.Duration, error) {
	c, err := s.cfg.Ledger.CampaignByNumber(ctx, campaign)
	if err != nil {
		return 0, err
	}
	if c.Ended(s.cfg.Now()) {
		_, err := s.cfg.Ledger.MoveAnnouncement(ctx, id, AnnouncementCancelled, "the campaign is over", dibs.Ms(s.cfg.Now()))
		if err == nil {
			err = ErrPushTaken
		}
		return 0, err
	}
	a, n, err := s.cfg.Ledger.EnqueueFollowers(ctx, events.PushTurn{ID: id, Owner: s.pushing.owner, Lease: pushLease})
	if err != nil {
		return 0, err
	}
	s.pushing.numbers.turn(a, n, nil)
	switch {
	case a.State != AnnouncementRunning:
		s.cfg.Logger.Info("an announcement is "+string(a.State), "announcement", id, "campaign", c.ID, "followers", a.Followers, "enqueued", a.Enqueued)
		return 0, ErrPushTaken
	case n == PushMost:
		return 0, nil
	}
	return a.Pause(), nil
}

// Watch calls tell with each event of announcements, whichever node it
// was enqueued by, from now on. tell is called from one goroutine; none begins
// after stop has returned.
func (s *Announcements) Watch(tell func(*events.Push)) (stop func()) {
	// Where the feed ends is known later if the ledger does not answer now.
	row := s.feedEnd(s.cfg.Life)
	p := &s.pushing
	p.tellMu.Lock()
	defer p.tellMu.Unlock()
	if len(p.tell) == 0 {
		p.tell, p.row = map[int]func(*events.Push){}, row
	}
	n := p.next
	p.next++
	p.tell[n] = tell
	return func() {
		p.tellMu.Lock()
		defer p.tellMu.Unlock()
		delete(p.tell, n)
	}
}

// feedEnd is the feed's last row; -1 when the ledger does not say.
func (s *Announcements) feedEnd(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, pushEvery)
	defer cancel()
	head, _, err := s.cfg.Ledger.FeedHead(ctx, 0)
	if err != nil {
		return -1
	}
	return head
}

// tellPushesLoop tells whoever watches on this node of announcements.
func (s *Announcements) tellPushesLoop(ctx context.Context) {
	for wait.Sleep(ctx, tellPushesEvery) {
		for s.tellPushes(ctx) {
			continue
		}
	}
}

// tellPushes tells of some events, and reports whether there may be more.
func (s *Announcements) tellPushes(ctx context.Context) bool {
	p := &s.pushing
	p.tellMu.Lock()
	defer p.tellMu.Unlock()
	if len(p.tell) == 0 {
		return false
	}
	if p.row < 0 {
		p.row = s.feedEnd(ctx)
		return false
	}
	pushes, last, err := s.cfg.Ledger.Pushes(ctx, p.row, pushesRead)
	if err != nil {
		// It is tried again; that the ledger does not answer is said elsewhere.
		return false
	}
	for i := range pushes {
		for _, tell := range p.tell {
			tell(&pushes[i])
		}
	}
	p.row = last
	return len(pushes) == pushesRead
}

// Metrics returns a snapshot of the announcements.
func (s *Announcements) Metrics() PushMetrics { return s.pushing.numbers.metrics(s.cfg.Now()) }

// Loops are what runs in the background, each until its context ends.
func (s *Announcements) Loops() []func(context.Context) {
	return []func(context.Context){s.loop, s.tellPushesLoop}
}
