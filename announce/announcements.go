package announce

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// Ledger keeps announcements and their progress.
type Ledger interface {
	// InsertAnnouncement stores a new announcement that is running, notes who
	// follows at this moment in Followers and UpTo, and chooses the First of them,
	// if there are more than Threshold: the highest rank first, and of equals who
	// has followed longest. ErrAlreadyExists; *Error of InvalidState when another
	// announcement of the campaign is active; of InvalidRequest, naming /merchant,
	// when nobody follows.
	InsertAnnouncement(ctx context.Context, a *Announcement) error
	// Announcement returns one. ErrNotFound.
	Announcement(ctx context.Context, id string) (*Announcement, error)
	// AnnouncementsOf lists those of a campaign, the newest first.
	AnnouncementsOf(ctx context.Context, campaign uint32, page dibs.Page) (dibs.List[Announcement], error)
	// RunningAnnouncements lists up to max that are running, the oldest first.
	RunningAnnouncements(ctx context.Context, max int) ([]Announcement, error)
	// MoveAnnouncement moves one to another state by Announcement.Become.
	// ErrNotFound, *Error of InvalidState.
	MoveAnnouncement(ctx context.Context, id string, to AnnouncementState, why string, now time.Time) (*Announcement, error)
	// EnqueueFollowers enqueues as many followers as Announcement.Allowance says, in
	// one transaction with the place behind them: nobody is enqueued twice, however
	// many processes try. It returns how many, and the announcement as it then
	// is: done, when nobody is left. Leases and rates go by the ledger's clock.
	// ErrPushTaken; ErrConflict.
	EnqueueFollowers(ctx context.Context, t events.PushTurn) (*Announcement, int, error)
	// Untaken counts the followers of an announcement in rows of the feed after one.
	Untaken(ctx context.Context, id string, row int64) (int64, error)
	// Pushes returns the events of announcements after a row of the feed, in order,
	// up to max, and the row to go on from.
	Pushes(ctx context.Context, after int64, max int) (pushes []events.Push, last int64, err error)
	// FeedHead returns the number of the last row, and when the oldest row after
	// a place was written; zero when there is none.
	FeedHead(ctx context.Context, after int64) (head int64, oldest time.Time, err error)
	// Sinks lists the takers of the feed by name.
	Sinks(ctx context.Context) ([]events.SinkState, error)
	// MerchantSizes calls do for each number of followers that a merchant has, the lowest
	// first, with how many merchants have it. Merchants without followers are left out.
	MerchantSizes(ctx context.Context, do func(followers, merchants int64)) error
	CampaignByNumber(ctx context.Context, number uint32) (*dibs.Campaign, error)
}

// Announcements tells followers of campaigns. All methods are safe for concurrent use.
type Announcements struct {
	cfg     Config
	trouble *trouble.Log
	pushing pushing
}

// Config is what Announcements is made of.
type Config struct {
	Live   *live.Node
	Ledger Ledger
	Logger *slog.Logger
	Now    func() time.Time
	Push   PushConfig
	// Life ends when the node is closed.
	Life context.Context
}

// New returns Announcements on a node.
func New(c Config) *Announcements {
	return &Announcements{
		cfg: c, trouble: trouble.New(c.Logger, slog.LevelWarn),
		pushing: pushing{owner: dibs.NewID("node-"), kick: make(chan struct{}, 1), busy: make(map[string]bool)},
	}
}

// PushConfig is how campaigns are announced when nothing else is said.
type PushConfig struct {
	// Threshold is up to how many followers all are told at once; default 10,000.
	Threshold int64
	// First is how many are told at once when there are more; default 1,000.
	First int64
	// Rate is how many of the others are told each second; default 1,000.
	Rate int64
}

// WithDefaults returns the config with every zero field set.
func (p PushConfig) WithDefaults() PushConfig {
	p.Threshold = cmp.Or(p.Threshold, 10_000)
	p.First = cmp.Or(p.First, min(1000, p.Threshold))
	p.Rate = cmp.Or(p.Rate, 1000)
	return p
}

// Create tells a campaign to the followers of a merchant, from now on. *Error
// of InvalidRequest or InvalidState; ErrNotFound, ErrAlreadyExists.
func (s *Announcements) Create(ctx context.Context, campaignID string, spec AnnouncementSpec) (*Announcement, error) {
	c, err := s.cfg.Live.Registry.Now(ctx, campaignID)
	if err != nil {
		return nil, err
	}
	now := dibs.Ms(s.cfg.Now())
	a := &Announcement{
		ID: cmp.Or(spec.ID, dibs.NewID("ann-")), Campaign: c.Number, CampaignID: c.ID, Merchant: spec.Merchant, Message: spec.Message,
		State: AnnouncementRunning, Threshold: s.cfg.Push.Threshold, Rate: s.cfg.Push.Rate, PacedAt: now, CreatedAt: now, UpdatedAt: now,
	}
	dibs.Set(&a.Threshold, spec.Threshold)
	a.First = max(0, min(s.cfg.Push.First, a.Threshold))
	dibs.Set(&a.First, spec.First)
	dibs.Set(&a.Rate, spec.Rate)
	a.Merchant = cmp.Or(a.Merchant, c.Gate.FollowersOf())
	if fs := a.faults(c); len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	if c.State == dibs.Draft {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign is a draft: publish it, then announce it", ZH: "活动尚为草稿：请先发布再通知"})
	}
	if c.Ended(now) {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign is over: there is nothing to announce", ZH: "活动已结束，无需通知"})
	}
	if err := s.cfg.Ledger.InsertAnnouncement(ctx, a); err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	wait.Kick(s.pushing.kick)
	return a, nil
}

// breaks makes one line of a message, which may have several, as TextFault wants it.
var breaks = strings.NewReplacer("\r", " ", "\n", " ", "\t", " ")

// faults lists what is wrong with an announcement of a campaign.
func (a *Announcement) faults(c *dibs.Campaign) (fs []dibs.Fault) {
	within := func(field string, n, least, most int64) {
		if n < least || n > most {
			fs = append(fs, dibs.Fault{Field: field, Problem: dibs.Textf("must be from %d to %d", "必须在 %d 到 %d 之间", least, most)})
		}
	}
	if !dibs.IsID(a.ID) {
		fs = append(fs, dibs.Fault{Field: "/id", Problem: dibs.BadID})
	}
	switch audience := c.Gate.FollowersOf(); {
	case a.Merchant == "":
		fs = append(fs, dibs.Fault{Field: "/merchant", Problem: dibs.Text{
			EN: "is required: the campaign is not for the followers of a merchant, so say whose are to hear of it", ZH: "必填：活动未限定某商家的关注者，请指明通知谁的关注者",
		}})
	case !dibs.IsID(a.Merchant):
		fs = append(fs, dibs.Fault{Field: "/merchant", Problem: dibs.BadID})
	case audience != "" && audience != a.Merchant:
		fs = append(fs, dibs.Fault{Field: "/merchant", Problem: dibs.Textf("must be %[1]s: the campaign is for the followers of %[1]s alone", "必须是 %[1]s：活动仅限 %[1]s 的关注者", audience)})
	}
	fs = append(fs, dibs.TextFault("/message", breaks.Replace(a.Message), false, MaxMessage)...)
	within("/threshold", a.Threshold, 0, gate.MaxAudience)
	within("/first", a.First, 0, MaxFirst)
	if a.Threshold >= 0 && a.First > a.Threshold && a.First <= MaxFirst {
		fs = append(fs, dibs.Fault{Field: "/first", Problem: dibs.Textf("must be at most the threshold, %d: up to it all are told at once", "不能超过阈值 %d：不超过阈值时全部立即通知", a.Threshold)})
	}
	within("/rate", a.Rate, 1, MaxPushRate)
	return fs
}

// List lists those of a campaign, the newest first. ErrNotFound.
func (s *Announcements) List(ctx context.Context, campaignID string, page dibs.Page) (dibs.List[Announcement], error) {
	c, err := s.cfg.Live.Registry.Now(ctx, campaignID)
	if err != nil {
		return dibs.List[Announcement]{}, err
	}
	l, err := s.cfg.Ledger.AnnouncementsOf(ctx, c.Number, page)
	return l, dibs.AsUnavailable(err, dibs.EffectNone)
}

// Get shows one, with how many of its followers every taker of the
// events has. ErrNotFound.
func (s *Announcements) Get(ctx context.Context, id string) (AnnouncementView, error) {
	// The count of those taken is read first: it never exceeds that of those enqueued.
	sinks, err := s.cfg.Ledger.Sinks(ctx)
	if err != nil {
		return AnnouncementView{}, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	untaken, row := int64(0), int64(-1)
	for i := range sinks {
		if row < 0 || sinks[i].Taken < row {
			row = sinks[i].Taken
		}
	}
	a, err := s.cfg.Ledger.Announcement(ctx, id)
	if err == nil && row >= 0 {
		untaken, err = s.cfg.Ledger.Untaken(ctx, id, row)
	}
	if err != nil {
		return AnnouncementView{}, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	v := a.View()
	if row >= 0 {
		delivered := max(a.Enqueued-untaken, 0)
		v.Delivered = &delivered
	}
	return v, nil
}

// Pause enqueues no follower until Resume. Repeating it
// changes nothing, as with the others. ErrNotFound, *Error of InvalidState.
func (s *Announcements) Pause(ctx context.Context, id string) (*Announcement, error) {
	return s.moveTo(ctx, id, AnnouncementPaused)
}

// Resume goes on with what was paused.
func (s *Announcements) Resume(ctx context.Context, id string) (*Announcement, error) {
	return s.moveTo(ctx, id, AnnouncementRunning)
}

// Cancel ends an announcement: whoever is not enqueued never is.
func (s *Announcements) Cancel(ctx context.Context, id string) (*Announcement, error) {
	return s.moveTo(ctx, id, AnnouncementCancelled)
}

func (s *Announcements) moveTo(ctx context.Context, id string, to AnnouncementState) (*Announcement, error) {
	a, err := s.cfg.Ledger.MoveAnnouncement(ctx, id, to, "", dibs.Ms(s.cfg.Now()))
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	wait.Kick(s.pushing.kick)
	return a, nil
}
