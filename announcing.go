package dibs

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// PushConfig is how campaigns are announced when nothing else is said.
type PushConfig struct {
	// Threshold is up to how many followers all hear at once; default 10,000.
	Threshold int64
	// First is how many hear at once when there are more; default 1,000.
	First int64
	// Rate is how many of the others hear each second; default 1,000.
	Rate int64
}

// withDefaults returns the config with every zero field set.
func (p PushConfig) withDefaults() PushConfig {
	p.Threshold = cmp.Or(p.Threshold, 10_000)
	p.First = cmp.Or(p.First, min(1000, p.Threshold))
	p.Rate = cmp.Or(p.Rate, 1000)
	return p
}

const (
	// pushEvery is how often announcements are looked for that other nodes have
	// begun, or left.
	pushEvery = time.Second
	// pushLease is how long a node keeps an announcement without a word.
	pushLease = 2 * time.Second
	// pushersAtOnce is how many announcements a node works on at a time, and
	// pushesListed how many it knows of.
	pushersAtOnce = 4
	pushesListed  = 100
	// tellPushesEvery is how often a node looks for what its clients are to hear.
	tellPushesEvery = 250 * time.Millisecond
	// pushesRead is how many events of announcements are read at a time.
	pushesRead = 32
)

func intText(n int64) string { return strconv.FormatInt(n, 10) }

// pushing is what a node does for announcements.
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
	// tell hear of pushes, by number, from a row of the feed on; -1 while it is not
	// known.
	tell map[int]func(*Push)
	next int
	row  int64
}

// Announce tells a campaign to the followers of a merchant, from now on. *Error
// of InvalidRequest or InvalidState; ErrNotFound, ErrAlreadyExists.
func (s *Service) Announce(ctx context.Context, campaignID string, spec AnnouncementSpec) (*Announcement, error) {
	c, err := s.CampaignNow(ctx, campaignID)
	if err != nil {
		return nil, err
	}
	now := ms(s.cfg.Now())
	a := &Announcement{
		ID: cmp.Or(spec.ID, newID("ann-")), Campaign: c.Number, CampaignID: c.ID, Merchant: spec.Merchant, Message: spec.Message,
		State: AnnouncementRunning, Threshold: s.cfg.Push.Threshold, Rate: s.cfg.Push.Rate, PacedAt: now, CreatedAt: now, UpdatedAt: now,
	}
	set(&a.Threshold, spec.Threshold)
	a.First = max(0, min(s.cfg.Push.First, a.Threshold))
	set(&a.First, spec.First)
	set(&a.Rate, spec.Rate)
	if c.Gate != nil && c.Gate.Audience != nil && a.Merchant == "" {
		a.Merchant = c.Gate.Audience.FollowersOf
	}
	if fs := a.faults(c); len(fs) > 0 {
		return nil, Invalid(fs...)
	}
	if c.State == Draft {
		return nil, Fail(InvalidState, Text{"the campaign is a draft: publish it, then announce it", "活动尚为草稿：请先发布再通知"})
	}
	if endedBy(c, now) {
		return nil, Fail(InvalidState, Text{"the campaign is over: there is nothing to announce", "活动已结束，无需通知"})
	}
	if err := s.ledger.InsertAnnouncement(ctx, a); err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	kick(s.pushing.kick)
	return a, nil
}

func endedBy(c *Campaign, now time.Time) bool { return c.State == EndedState || !now.Before(c.EndsAt) }

// faults lists what is wrong with an announcement of a campaign.
func (a *Announcement) faults(c *Campaign) (fs []Fault) {
	within := func(field string, n, least, most int64) {
		if n < least || n > most {
			fs = append(fs, Fault{field, Textf("must be from %d to %d", "必须在 %d 到 %d 之间", least, most)})
		}
	}
	if !isID(a.ID) {
		fs = append(fs, Fault{"/id", badID})
	}
	switch audience := (c.Gate != nil && c.Gate.Audience != nil); {
	case a.Merchant == "":
		fs = append(fs, Fault{"/merchant", Text{
			"is required: the campaign is not for the followers of a merchant, so say whose are to hear of it", "必填：活动未限定某商家的关注者，请指明通知谁的关注者",
		}})
	case !isID(a.Merchant):
		fs = append(fs, Fault{"/merchant", badID})
	case audience && c.Gate.Audience.FollowersOf != "" && c.Gate.Audience.FollowersOf != a.Merchant:
		fs = append(fs, Fault{"/merchant", Textf("must be %[1]s: the campaign is for the followers of %[1]s alone", "必须是 %[1]s：活动仅限 %[1]s 的关注者", c.Gate.Audience.FollowersOf)})
	}
	if !utf8.ValidString(a.Message) || utf8.RuneCountInString(a.Message) > MaxMessage {
		fs = append(fs, Fault{"/message", Textf("must be at most %d characters of UTF-8", "最多 %d 个 UTF-8 字符", MaxMessage)})
	}
	within("/threshold", a.Threshold, 0, MaxAudience)
	within("/first", a.First, 0, MaxFirst)
	if a.Threshold >= 0 && a.First > a.Threshold && a.First <= MaxFirst {
		fs = append(fs, Fault{"/first", Textf("must be at most the threshold, %d: up to it all hear at once", "不能超过阈值 %d：不超过阈值时全部立即通知", a.Threshold)})
	}
	within("/rate", a.Rate, 1, MaxPushRate)
	return fs
}

// Announcements lists those of a campaign, the newest first. ErrNotFound.
func (s *Service) Announcements(ctx context.Context, campaignID string, page Page) (List[Announcement], error) {
	c, err := s.CampaignNow(ctx, campaignID)
	if err != nil {
		return List[Announcement]{}, err
	}
	l, err := s.ledger.AnnouncementsOf(ctx, c.Number, page)
	if err != nil {
		return List[Announcement]{}, asUnavailable(err, EffectNone)
	}
	return l, nil
}

// Announcement shows one, with how many of its followers every taker of the
// events has. ErrNotFound.
func (s *Service) Announcement(ctx context.Context, id string) (AnnouncementView, error) {
	// What is taken is read first: it is never more than what is enqueued.
	sinks, err := s.ledger.Sinks(ctx)
	if err != nil {
		return AnnouncementView{}, asUnavailable(err, EffectNone)
	}
	untaken, row := int64(0), int64(-1)
	for i := range sinks {
		if row < 0 || sinks[i].Taken < row {
			row = sinks[i].Taken
		}
	}
	a, err := s.ledger.Announcement(ctx, id)
	if err == nil && row >= 0 {
		untaken, err = s.ledger.Untaken(ctx, id, row)
	}
	if err != nil {
		return AnnouncementView{}, asUnavailable(err, EffectNone)
	}
	v := a.View()
	if row >= 0 {
		delivered := max(a.Enqueued-untaken, 0)
		v.Delivered = &delivered
	}
	return v, nil
}

// PauseAnnouncement has nobody enqueued until ResumeAnnouncement. Repeating it
// changes nothing, as with the others. ErrNotFound, *Error of InvalidState.
func (s *Service) PauseAnnouncement(ctx context.Context, id string) (*Announcement, error) {
	return s.moveAnnouncement(ctx, id, AnnouncementPaused)
}

// ResumeAnnouncement goes on with what was paused.
func (s *Service) ResumeAnnouncement(ctx context.Context, id string) (*Announcement, error) {
	return s.moveAnnouncement(ctx, id, AnnouncementRunning)
}

// CancelAnnouncement ends an announcement: whoever is not enqueued never is.
func (s *Service) CancelAnnouncement(ctx context.Context, id string) (*Announcement, error) {
	return s.moveAnnouncement(ctx, id, AnnouncementCancelled)
}

func (s *Service) moveAnnouncement(ctx context.Context, id string, to AnnouncementState) (*Announcement, error) {
	a, err := s.ledger.MoveAnnouncement(ctx, id, to, "", ms(s.cfg.Now()))
	if err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	kick(s.pushing.kick)
	return a, nil
}

// pushLoop enqueues the followers of announcements that run.
func (s *Service) pushLoop(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	free := make(chan struct{}, pushersAtOnce)
	for sleepOr(ctx, pushEvery, s.pushing.kick) {
		running, err := s.ledger.RunningAnnouncements(ctx, pushesListed)
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
			select {
			case free <- struct{}{}:
			default:
				// Its turn comes when another one is done.
				s.pushing.end(a.ID)
				continue
			}
			all.Go(func() {
				defer func() { <-free }()
				defer s.pushing.end(a.ID)
				s.push(ctx, a)
			})
		}
	}
}

func (p *pushing) begin(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[id] {
		return false
	}
	if p.busy == nil {
		p.busy = map[string]bool{}
	}
	p.busy[id] = true
	return true
}

func (p *pushing) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, id)
}

// push works on an announcement until it does not run any more, or another
// node has it.
func (s *Service) push(ctx context.Context, a *Announcement) {
	for ctx.Err() == nil {
		pause, err := s.pushTurn(ctx, a.ID, a.Campaign)
		switch {
		case errors.Is(err, ErrPushTaken), errors.Is(err, ErrNotFound):
			return
		case err != nil && ctx.Err() == nil:
			s.pushing.numbers.turn(a, 0, err)
			s.log.Warn("an announcement waits: followers could not be enqueued", "announcement", a.ID, "err", err)
			pause = pushEvery
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// pushTurn enqueues some followers and returns how long to wait for the next.
func (s *Service) pushTurn(ctx context.Context, id string, campaign uint32) (time.Duration, error) {
	c, err := s.ledger.CampaignByNumber(ctx, campaign)
	if err != nil {
		return 0, err
	}
	if endedBy(c, s.cfg.Now()) {
		_, err := s.ledger.MoveAnnouncement(ctx, id, AnnouncementCancelled, "the campaign is over", ms(s.cfg.Now()))
		if err == nil {
			err = ErrPushTaken
		}
		return 0, err
	}
	a, n, err := s.ledger.EnqueueFollowers(ctx, PushTurn{ID: id, Owner: s.pushing.owner, Lease: pushLease})
	if err != nil {
		return 0, err
	}
	s.pushing.numbers.turn(a, n, nil)
	switch {
	case a.State != AnnouncementRunning:
		s.log.Info("an announcement is "+string(a.State), "announcement", id, "campaign", c.ID, "followers", a.Followers, "enqueued", a.Enqueued)
		return 0, ErrPushTaken
	case n == PushMost:
		return 0, nil
	}
	return a.Pause(), nil
}

// WatchPushes calls tell with each event of announcements, whichever node it
// was enqueued by, from now on. tell is called from one goroutine; none begins
// after stop has returned.
func (s *Service) WatchPushes(tell func(*Push)) (stop func()) {
	// Where the feed ends is known later if the ledger does not answer now.
	row := s.feedEnd(s.life)
	p := &s.pushing
	p.tellMu.Lock()
	defer p.tellMu.Unlock()
	if len(p.tell) == 0 {
		p.tell, p.row = map[int]func(*Push){}, row
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
func (s *Service) feedEnd(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, pushEvery)
	defer cancel()
	head, _, err := s.ledger.FeedHead(ctx, 0)
	if err != nil {
		return -1
	}
	return head
}

// tellPushesLoop tells whoever watches on this node of announcements.
func (s *Service) tellPushesLoop(ctx context.Context) {
	for sleep(ctx, tellPushesEvery) {
		for s.tellPushes(ctx) {
			continue
		}
	}
}

// tellPushes tells of some events, and reports whether there may be more.
func (s *Service) tellPushes(ctx context.Context) bool {
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
	pushes, last, err := s.ledger.Pushes(ctx, p.row, pushesRead)
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
