package erasure

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/slots"
)

// EraseState is how far an erasure is.
type EraseState string

// The states of an erasure.
const (
	// ErasureRunning: what can be erased is being erased.
	ErasureRunning EraseState = "running"
	// ErasureWaiting: something holds the user that must not be touched yet; the
	// rest is erased. It goes on by itself.
	ErasureWaiting EraseState = "waiting"
	// ErasureDone: nothing is left, and the erasure has forgotten whose it was.
	ErasureDone EraseState = "done"
)

// EraseStep is a part of an erasure's round.
type EraseStep string

// The steps of a round, in their order. Each finds what is there still, so that
// a repeat does no harm.
const (
	EraseClaims     EraseStep = "claims"
	EraseLotteries  EraseStep = "lotteries"
	EraseQuarantine EraseStep = "quarantine"
	ErasePlaces     EraseStep = "places"
	EraseFollows    EraseStep = "follows"
	EraseMoney      EraseStep = "money"
	// EraseLists is the service's: ledgers cannot read lists of users.
	EraseLists    EraseStep = "lists"
	EraseRequests EraseStep = "requests"
	// EraseAnnounced is before EraseDeliveries, which are written from its rows.
	EraseAnnounced  EraseStep = "announced"
	EraseDeliveries EraseStep = "deliveries"
	EraseAudit      EraseStep = "audit"
	// EraseCheck finds what holds the user still.
	EraseCheck EraseStep = "check"
	// EraseEnd is behind the last step: the service decides what comes next.
	EraseEnd EraseStep = "end"
)

var eraseSteps = []EraseStep{
	EraseClaims, EraseLotteries, EraseQuarantine, ErasePlaces, EraseFollows, EraseMoney, EraseLists, EraseRequests, EraseAnnounced, EraseDeliveries, EraseAudit, EraseCheck, EraseEnd,
}

// campaignSteps are those that leave campaigns alone which an engine holds.
var campaignSteps = []EraseStep{EraseClaims, EraseLotteries, EraseQuarantine, ErasePlaces, EraseMoney, EraseCheck}

// PseudonymPrefix begins what stands in the place of an erased user. What
// follows is random, and nobody keeps whose it was.
const PseudonymPrefix = slots.PseudonymPrefix

// Erasure is the taking of a user's id, and of what is personal, out of the
// ledger. Counts, stock and sums of money stay as they are: rows stay, with a
// pseudonym in the user's place.
type Erasure struct {
	ID string
	// UserID and Pseudonym are empty once it is done.
	UserID, Pseudonym string
	// LeaveBalance lets money stay on an account that belongs to nobody then.
	LeaveBalance bool
	State        EraseState
	// Step is the next one, and Cursor where in its rows it goes on.
	Step   EraseStep
	Cursor string
	// Changed counts what this round has changed; CleanSince is since when rounds
	// change nothing, zero before.
	Changed    int64
	CleanSince time.Time
	// WaitsFor names what holds the user still.
	WaitsFor []string
	// Erased counts rows by what they are.
	Erased      map[string]int64
	RequestedAt time.Time
	UpdatedAt   time.Time
	// DoneAt is zero before.
	DoneAt time.Time
	// AskedAt is when the entry of the admin log began that asked for it last; zero for none. The log is changed only
	// for an erasure that an entry of it has asked for.
	AskedAt time.Time
	// Version rises with each change.
	Version int64
}

// Clone is a copy that shares nothing.
func (e *Erasure) Clone() *Erasure {
	c := *e
	c.Erased, c.WaitsFor = maps.Clone(e.Erased), slices.Clone(e.WaitsFor)
	return &c
}

// Note counts rows that a step has changed.
func (e *Erasure) Note(what EraseStep, n int64) {
	if n == 0 {
		return
	}
	if e.Erased == nil {
		e.Erased = make(map[string]int64)
	}
	e.Erased[string(what)] += n
	e.Changed += n
}

// Advance goes on to the next step.
func (e *Erasure) Advance() {
	e.Step, e.Cursor = eraseSteps[min(slices.Index(eraseSteps, e.Step)+1, len(eraseSteps)-1)], ""
}

// again begins another round.
func (e *Erasure) again() { e.Step, e.Cursor, e.Changed = eraseSteps[0], "", 0 }

// ErasureView is an erasure as shown.
type ErasureView struct {
	ID           string           `json:"id"`
	UserID       string           `json:"user_id,omitempty" doc:"whose data it is; absent once it is done"`
	State        EraseState       `json:"state" enum:"running,waiting,done"`
	WaitsFor     []string         `json:"waits_for" doc:"what holds the user still, and cannot be touched yet"`
	LeaveBalance bool             `json:"leave_balance"`
	Erased       map[string]int64 `json:"erased" doc:"rows by what they are"`
	RequestedAt  time.Time        `json:"requested_at"`
	DoneAt       *time.Time       `json:"done_at,omitempty"`
}

// View returns the erasure as shown.
func (e *Erasure) View() ErasureView {
	v := ErasureView{
		ID: e.ID, UserID: e.UserID, State: e.State, WaitsFor: e.WaitsFor, LeaveBalance: e.LeaveBalance, Erased: e.Erased, RequestedAt: e.RequestedAt,
	}
	if v.WaitsFor == nil {
		v.WaitsFor = []string{}
	}
	if v.Erased == nil {
		v.Erased = map[string]int64{}
	}
	if !e.DoneAt.IsZero() {
		v.DoneAt = &e.DoneAt
	}
	return v
}

// ErasureSpec asks for an erasure.
type ErasureSpec struct {
	LeaveBalance bool `json:"leave_balance,omitempty" doc:"money on the user's account stays there, and the account belongs to nobody: pay it out first. Without it, a user who has money is not erased"`
	// Act is the id of the entry of the admin log that asks for it; empty for none.
	Act string `json:"-"`
}

// UserRecord is what the ledger has about a user, for the user's own
// question. Lists in it end after MaxUserRecord.
type UserRecord struct {
	UserID string `json:"user_id"`
	// Campaigns are those in which the user has claims, the newest first.
	Campaigns   []UserClaims `json:"campaigns" doc:"claims by campaign; dibs claim list --user shows each"`
	Balances    []dibs.Money `json:"balances" doc:"what is on the account; dibs account show has the entries"`
	Sent        []string     `json:"red_packets_sent" doc:"campaigns that the user pays for"`
	Lotteries   []string     `json:"lotteries" doc:"campaigns that the user has registered for"`
	Rooms       []string     `json:"waiting_rooms" doc:"campaigns in whose waiting room the ledger keeps a place; Redis keeps others for up to 7 days after the end"`
	Follows     []string     `json:"follows" doc:"merchants whom the user follows"`
	Lists       []string     `json:"lists" doc:"lists of users with this one"`
	Quarantined int64        `json:"in_quarantine" doc:"journal entries that could not be settled"`
	// Erasure is the one under way.
	Erasure *ErasureView `json:"erasure,omitempty"`
}

// Empty reports whether nothing but the id that was asked for is in the record.
func (r UserRecord) Empty() bool {
	return len(r.Campaigns)+len(r.Balances)+len(r.Sent)+len(r.Lotteries)+len(r.Rooms)+len(r.Follows)+len(r.Lists) == 0 && r.Quarantined == 0 && r.Erasure == nil
}

// UserClaims counts a user's claims of a campaign.
type UserClaims struct {
	CampaignID string `json:"campaign_id"`
	Claims     int64  `json:"claims"`
}

// Eraser has users in places that a ledger cannot read.
type Eraser interface {
	// EraseUser takes a user out of all of them, and returns of how many.
	EraseUser(ctx context.Context, user string) (int64, error)
	// ListsOf names those that have the user, at most MaxUserRecord.
	ListsOf(ctx context.Context, user string) ([]string, error)
}

// MaxUserRecord bounds each list of a UserRecord.
const MaxUserRecord = 1000
