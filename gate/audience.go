package gate

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
)

// Follower is a user who follows a merchant.
type Follower struct {
	User string `json:"user"`
	// Rank orders followers: the higher is told first.
	Rank  int64     `json:"rank"`
	Since time.Time `json:"since"`
}

// FollowerChange is a user who follows a merchant since, or not any more.
type FollowerChange struct {
	User    string
	Follows bool
	// Seq numbers a merchant's changes; the last one of each user is kept.
	Seq int64
}

// Merchant is somebody who is followed.
type Merchant struct {
	ID        string `json:"id"`
	Followers int64  `json:"followers"`
	// Seq is that of the last change.
	Seq int64 `json:"-"`
}

// MaxAudience is the most users of a list, or of a merchant's followers.
const MaxAudience = 10_000_000

// AudienceLedger keeps lists of users and followers.
type AudienceLedger interface {
	// PutAudiencePart stores a part of a version of a list, which nobody sees
	// before FinishAudience.
	PutAudiencePart(ctx context.Context, id string, version int64, part int, users []byte) error
	// FinishAudience makes a version count, whose parts are stored, and drops those
	// of others, in one transaction. ErrConflict when a later one counts.
	FinishAudience(ctx context.Context, a *dibs.Audience) error
	// DropAudience drops the parts of a version that was broken off, but never those
	// of the version that counts: a finish may fail after it took effect.
	DropAudience(ctx context.Context, id string, version int64) error
	// Audience returns a list. ErrNotFound.
	Audience(ctx context.Context, id string) (*dibs.Audience, error)
	// ReplaceAudiencePart stores a part of the version that counts without some of
	// its users, in one transaction: the list has left users then, where it had
	// before. ErrConflict when it has not, or another version counts.
	ReplaceAudiencePart(ctx context.Context, a *dibs.Audience, part int, users []byte, left int64) error
	// AudienceList lists by id.
	AudienceList(ctx context.Context, page dibs.Page) (dibs.List[dibs.Audience], error)
	// AudiencePart returns a part of a version. ErrNotFound when it is not there,
	// or not any more.
	AudiencePart(ctx context.Context, id string, version int64, part int) ([]byte, error)

	// Follow makes users follow a merchant, or no longer, in one transaction, and
	// returns how many did not before; a changed rank changes without being counted.
	Follow(ctx context.Context, merchant string, users []Follower, follows bool) (int64, error)
	// Merchant returns one. ErrNotFound while it never had followers.
	Merchant(ctx context.Context, id string) (*Merchant, error)
	// Followers lists a merchant's followers, the highest rank first.
	Followers(ctx context.Context, merchant string, page dibs.Page) (dibs.List[Follower], error)
	// FollowerChanges returns changes after a Seq, in order, up to max.
	FollowerChanges(ctx context.Context, merchant string, after int64, max int) ([]FollowerChange, error)
}
