package announce

import (
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

// AnnouncementState is how an announcement stands.
type AnnouncementState string

// The states of announcements.
const (
	// AnnouncementRunning: followers are being enqueued.
	AnnouncementRunning AnnouncementState = "running"
	// AnnouncementPaused: nobody is enqueued until it is resumed.
	AnnouncementPaused AnnouncementState = "paused"
	// AnnouncementDone: every follower of its moment is enqueued, but those who
	// followed no longer when their turn came.
	AnnouncementDone AnnouncementState = "done"
	// AnnouncementCancelled: whoever was not enqueued never is.
	AnnouncementCancelled AnnouncementState = "cancelled"
)

// Limits of announcements.
const (
	// MaxFirst is the most followers who are told before the queue.
	MaxFirst = 100_000
	// MaxPushRate is the most followers a second that leave the queue.
	MaxPushRate = 1_000_000
	// MaxMessage is the most characters of an announcement's message.
	MaxMessage = 1000
	// PushBatch is the most recipients of one event.
	PushBatch = 500
	// PushMost is the most followers who are enqueued in one transaction.
	PushMost = 10 * PushBatch
	// pushBurst bounds what may be made up for at once when the queue stood still.
	pushBurst = time.Second
)

// Announcement is a campaign that is told to the followers of a merchant: to
// all of them at once when they are Threshold or fewer, else to the First by
// rank at once and to the others at a Rate.
type Announcement struct {
	ID string
	// Campaign is the campaign's number.
	Campaign   uint32
	CampaignID string
	Merchant   string
	Message    string
	State      AnnouncementState
	// Why is the reason when it was cancelled by itself.
	Why string
	// Rate is in followers a second.
	Threshold, First, Rate int64
	// Followers is how many there were when it began, and UpTo the Seq of the last
	// of their changes: whoever follows later is not told.
	Followers, UpTo int64
	// Enqueued counts followers, Events the events that they are in.
	Enqueued, Events int64
	// FirstTo and RestTo are the Seqs up to which the first, and the others, are
	// enqueued. FirstDone says that no more of the first are left.
	FirstTo, RestTo int64
	FirstDone       bool
	// PacedAt is when the queue has used its rate up to.
	PacedAt    time.Time
	CreatedAt  time.Time
	UpdatedAt  time.Time
	FinishedAt time.Time
}

// AtOnce reports whether the followers whose turn it is do not wait for the rate.
func (a *Announcement) AtOnce() bool { return !a.FirstDone || a.Followers <= a.Threshold }

// Allowance is how many followers may be enqueued now, PushMost at most. When
// the queue stood still, no more than a second of it is made up for.
func (a *Announcement) Allowance(now time.Time) int {
	if a.AtOnce() {
		return PushMost
	}
	free := min(now.Sub(a.paced(now)), pushBurst)
	if free <= 0 {
		return 0
	}
	return int(min(free.Milliseconds()*a.Rate/1000, PushMost))
}

// paced is PacedAt within what may be made up for. A queue uses up a second at
// most in advance: what is further ahead is of a clock that was wrong, or of
// another one, and nobody waits for that.
func (a *Announcement) paced(now time.Time) time.Time {
	oldest := now.Add(-pushBurst)
	if a.PacedAt.Before(oldest) || a.PacedAt.After(now.Add(2*pushBurst)) {
		return oldest
	}
	return a.PacedAt
}

// Enqueue notes that so many followers were enqueued, by so many events.
func (a *Announcement) Enqueue(followers, events int, now time.Time) {
	if !a.AtOnce() {
		begun := a.paced(now)
		// Rounded up: it is never faster than it was told to be.
		used := (int64(followers)*1000 + a.Rate - 1) / a.Rate
		a.PacedAt = begun.Add(time.Duration(used) * time.Millisecond)
	}
	a.Enqueued += int64(followers)
	a.Events += int64(events)
	a.UpdatedAt = now
}

// Pause is how long to wait until a batch worth its event may be enqueued.
func (a *Announcement) Pause() time.Duration {
	const shortest, longest = 50 * time.Millisecond, 500 * time.Millisecond
	if a.AtOnce() {
		return 0
	}
	return min(max(time.Duration(PushBatch*int64(time.Second)/a.Rate), shortest), longest)
}

// Active reports whether followers are left to be enqueued.
func (a *Announcement) Active() bool {
	return a.State == AnnouncementRunning || a.State == AnnouncementPaused
}

// Become moves an announcement to another state and reports whether it was in
// that one already. *Error of InvalidState for what is over.
func (a *Announcement) Become(to AnnouncementState, why string, now time.Time) (same bool, err error) {
	if a.State == to {
		return true, nil
	}
	if !a.Active() {
		return false, dibs.Fail(dibs.InvalidState, dibs.Textf("the announcement %[1]s is %[2]s: announce the campaign again", "通知 %[1]s 已处于 %[2]s 状态：请重新发起通知", a.ID, a.State))
	}
	a.State, a.Why, a.UpdatedAt = to, why, now
	if !a.Active() {
		a.FinishedAt = now
	}
	return false, nil
}

// AnnouncementSpec asks for an announcement. A nil field is as the server is
// configured.
type AnnouncementSpec struct {
	ID       string `json:"id,omitempty" doc:"1-64 characters of A-Z a-z 0-9 . _ -; made up when absent"`
	Merchant string `json:"merchant,omitempty" doc:"whose followers; absent: those whom the campaign is for"`
	Message  string `json:"message,omitempty" doc:"up to 1000 characters for the followers to read"`
	// Threshold is up to how many followers all are told at once.
	Threshold *int64 `json:"threshold,omitempty" doc:"up to so many followers, all are told at once"`
	First     *int64 `json:"first,omitempty" doc:"above it, so many are told at once, by rank; at most threshold"`
	Rate      *int64 `json:"rate,omitempty" doc:"and so many a second of the others"`
}

// AnnouncementView is an announcement as shown.
type AnnouncementView struct {
	ID         string            `json:"id"`
	CampaignID string            `json:"campaign_id"`
	Merchant   string            `json:"merchant"`
	Message    string            `json:"message,omitempty"`
	State      AnnouncementState `json:"state" enum:"running,paused,done,cancelled"`
	Why        string            `json:"why,omitempty" doc:"the reason, when it was cancelled by itself"`
	Threshold  int64             `json:"threshold"`
	First      int64             `json:"first"`
	Rate       int64             `json:"rate" doc:"followers a second"`
	Followers  int64             `json:"followers" doc:"how many there were when it began"`
	Enqueued   int64             `json:"enqueued" doc:"how many of them are in events"`
	Events     int64             `json:"events" doc:"how many events that is"`
	// Delivered is absent in lists, and while nobody takes events.
	Delivered *int64 `json:"delivered,omitempty" doc:"how many every taker of the events has; absent in lists, and while there is no taker"`
	// Estimate is how long the rest of the queue takes at its rate.
	Estimate   dibs.Duration `json:"estimate" doc:"how long the rest takes at the rate"`
	CreatedAt  time.Time     `json:"created_at"`
	UpdatedAt  time.Time     `json:"updated_at"`
	FinishedAt *time.Time    `json:"finished_at,omitempty"`
}

// View returns the announcement as shown.
func (a *Announcement) View() AnnouncementView {
	v := AnnouncementView{
		ID: a.ID, CampaignID: a.CampaignID, Merchant: a.Merchant, Message: a.Message, State: a.State, Why: a.Why,
		Threshold: a.Threshold, First: a.First, Rate: a.Rate, Followers: a.Followers, Enqueued: a.Enqueued, Events: a.Events,
		CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}
	if !a.FinishedAt.IsZero() {
		v.FinishedAt = &a.FinishedAt
	}
	if left := a.Followers - a.Enqueued; a.Active() && a.Followers > a.Threshold && left > 0 {
		v.Estimate = dibs.Duration((time.Duration(left) * time.Second / time.Duration(a.Rate)).Round(time.Millisecond))
	}
	return v
}

// ErrPushTaken: another process enqueues the followers of this announcement now,
// or nobody is to.
var ErrPushTaken = errors.New("dibs: the announcement is in other hands, or not running")
