package gate

import (
	"context"
	"io"
	"time"

	"github.com/dibs-dev/dibs"
)

// LotteryState is how far a lottery is.
type LotteryState string

// The states of a lottery, in order.
const (
	// LotteryUpcoming: the seed is fixed, registration has not opened.
	LotteryUpcoming LotteryState = "upcoming"
	// LotteryOpen: users register.
	LotteryOpen LotteryState = "open"
	// LotteryClosed: the list is closed and its hash published.
	LotteryClosed LotteryState = "closed"
	// LotteryDrawn: the winners are known.
	LotteryDrawn LotteryState = "drawn"
)

// LotteryRule names how winners are drawn: docs/LOTTERY.md has it. Another way of
// drawing would have another name.
const LotteryRule = "dibs-lottery-1"

// LotteryView is a lottery as everybody sees it, in the order in which it becomes
// known. Hashes are SHA-256, as 64 hexadecimal digits.
type LotteryView struct {
	CampaignID string       `json:"campaign_id"`
	State      LotteryState `json:"state" enum:"upcoming,open,closed,drawn"`
	Rule       string       `json:"rule"`
	// Winners is how many are drawn at most.
	Winners  int64      `json:"winners"`
	OpensAt  *time.Time `json:"registration_opens_at,omitempty"`
	ClosesAt time.Time  `json:"registration_closes_at"`
	// SeedHash was fixed at CommittedAt, before the first registration.
	SeedHash    string    `json:"seed_hash"`
	CommittedAt time.Time `json:"committed_at"`
	// PublicValueIs names what will be mixed in; empty for nothing.
	PublicValueIs string `json:"public_value_is,omitempty"`
	// PublicValueFormat is how it will be written; empty for its simplest spelling.
	PublicValueFormat string `json:"public_value_format,omitempty"`

	// Entries and ListHash are known once registration is closed.
	ClosedAt *time.Time `json:"closed_at,omitempty"`
	Entries  int64      `json:"entries"`
	ListHash string     `json:"list_hash,omitempty"`

	// The rest is known once it is drawn. PublicValue is what was mixed in.
	PublicValue *string    `json:"public_value,omitempty"`
	Seed        string     `json:"seed,omitempty"`
	Key         string     `json:"key,omitempty"`
	Cutoff      string     `json:"cutoff,omitempty"`
	DrawnAt     *time.Time `json:"drawn_at,omitempty"`
}

// LotteryResult is what became of a registration.
type LotteryResult string

// The results.
const (
	LotteryPending LotteryResult = "pending"
	LotteryWon     LotteryResult = "won"
	LotteryLost    LotteryResult = "lost"
)

// EntryView is a user's own registration. Entry is what the public list has of
// it: the SHA-256 of campaign, user and nonce, a line each.
type EntryView struct {
	CampaignID   string        `json:"campaign_id"`
	Entry        string        `json:"entry"`
	Nonce        string        `json:"nonce"`
	RegisteredAt time.Time     `json:"registered_at"`
	Result       LotteryResult `json:"result" enum:"pending,won,lost"`
	// Ticket is the entry's ticket in the draw: it wins up to the cutoff.
	Ticket string `json:"ticket,omitempty"`
	// Admission is a winner's, from the campaign's start on; asking again renews it.
	Admission          string     `json:"admission,omitempty"`
	AdmissionExpiresAt *time.Time `json:"admission_expires_at,omitempty"`
}

// Lotteries registers users and tells who won. Its methods are safe for
// concurrent use; those of a campaign without a lottery are an *Error of NotFound.
type Lotteries interface {
	// Register enters the user, or returns the entry that they have, and then true.
	// *Error of NotStarted or Ended outside of the time for it.
	Register(ctx context.Context, c *dibs.Campaign, user string) (EntryView, bool, error)
	// Entry returns the user's entry. *Error of NotFound when they have none.
	Entry(ctx context.Context, c *dibs.Campaign, user string) (EntryView, error)
	// Lottery tells everybody how it stands.
	Lottery(ctx context.Context, c *dibs.Campaign) (LotteryView, error)
	// WriteEntries writes the closed list, whose SHA-256 is the ListHash. *Error of
	// InvalidState before the closing.
	WriteEntries(ctx context.Context, c *dibs.Campaign, w io.Writer) error
	// TellPublicValue tells the value that was named beforehand, once. *Error of
	// InvalidState when none was, before the closing, and for another value.
	TellPublicValue(ctx context.Context, c *dibs.Campaign, value string) (LotteryView, error)
}

// LotteryRow is a lottery as the ledger keeps it. Hashes are hexadecimal; what is
// not known yet is empty or zero.
type LotteryRow struct {
	Campaign uint32
	// Seed is secret until the draw.
	Seed        string
	Winners     int64
	CommittedAt time.Time
	ClosedAt    time.Time
	Entries     int64
	ListHash    string
	PublicValue string
	Cutoff      string
	DrawnAt     time.Time
	// Version rises with each change.
	Version int64
}

// LotteryEntry is a registration.
type LotteryEntry struct {
	UserID string
	Entry  string
	Nonce  string
	At     time.Time
}

// RoomLedger keeps lotteries, and the places of rooms that one process keeps.
// Every method is one transaction, safe for concurrent use.
type RoomLedger interface {
	// CommitLottery stores a lottery unless the campaign has one, and returns the
	// one it has then.
	CommitLottery(ctx context.Context, l LotteryRow) (*LotteryRow, error)
	// LotteryOf returns a campaign's lottery. ErrNotFound.
	LotteryOf(ctx context.Context, campaign uint32) (*LotteryRow, error)
	// UpdateLottery stores l where the stored Version is l.Version, and raises it in
	// l. Once ClosedAt is stored, no registration follows. ErrConflict.
	UpdateLottery(ctx context.Context, l *LotteryRow) error
	// RegisterEntries stores the entries of users who have none, at most, with
	// those there are, as many as max allows, and returns the users' entries in the
	// same order; a zero entry for a user whom max does not allow. ErrInvalidState
	// once the lottery is closed; ErrNotFound without one.
	RegisterEntries(ctx context.Context, campaign uint32, entries []LotteryEntry, max int64) ([]LotteryEntry, error)
	// EntryOf returns a user's entry. ErrNotFound.
	EntryOf(ctx context.Context, campaign uint32, user string) (*LotteryEntry, error)
	// EntriesAfter returns entries in ascending order of their hashes, after a hash.
	EntriesAfter(ctx context.Context, campaign uint32, after string, max int) ([]LotteryEntry, error)

	// SavePlaces stores places, of which some may be stored already, and how far the
	// room is.
	SavePlaces(ctx context.Context, r SavedRoom, places []SavedPlace) error
	// DropPlace notes that a place was given up: from then on its number is higher
	// by PlaceGivenUp.
	DropPlace(ctx context.Context, campaign uint32, number int64) error
	// SavedRoomOf returns how far a room was. ErrNotFound.
	SavedRoomOf(ctx context.Context, campaign uint32) (*SavedRoom, error)
	// SavedPlaces returns places by their numbers, after a number; those that were
	// given up are the last.
	SavedPlaces(ctx context.Context, campaign uint32, after int64, max int) ([]SavedPlace, error)
	// TrimRooms forgets the places of campaigns that ended before a time.
	TrimRooms(ctx context.Context, before time.Time) error
}
