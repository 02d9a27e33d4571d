package dibs

import "time"

// Page asks for a part of a list.
type Page struct {
	// Limit is 1 to MaxPage; 0 means DefaultPage.
	Limit int
	// Cursor is opaque: empty for the first page, then List.NextCursor.
	Cursor string
}

// The sizes of pages.
const (
	DefaultPage = 20
	MaxPage     = 100
)

// List is a page of a list.
type List[T any] struct {
	Items []T
	// NextCursor is empty at the end.
	NextCursor string
}

// ClaimFilter narrows a list of claims. Zero fields do not filter.
type ClaimFilter struct {
	Campaign uint32
	UserID   string
	Status   *Status
}

// Audience is an imported list of users.
type Audience struct {
	ID string
	// Version rises with each import.
	Version int64
	// Users is how many there are.
	Users int64
	// Seed is what the order of its parts was made with, and a secret: who knows it
	// may find ids that are taken for others.
	Seed      []byte
	UpdatedAt time.Time
}
