package client

import (
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

// Error is a refusal or an error as the server told it.
type Error struct {
	api.Problem
	// RetryAfter is how long the server asks to wait; 0 when it does not.
	RetryAfter time.Duration
}

// Error names the reason and the detail.
func (e *Error) Error() string {
	word := e.Reason
	if word == "" {
		word = "HTTP " + strconv.Itoa(e.Status)
	}
	s := word + ": " + e.Detail
	for _, f := range e.Errors {
		s += "; " + f.Pointer + " " + f.Detail
	}
	return s
}

// Is matches dibs's sentinels by their reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*dibs.Error)
	return ok && t.Reason.String() == e.Reason
}

// Pending is the error of an act that a second person has to approve: nothing was done yet.
type Pending struct {
	// ApprovalID is what Approvals.Approve takes, ExpiresAt is when the act is forgotten.
	ApprovalID string    `json:"approval_id"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Error says what to do.
func (e *Pending) Error() string {
	return "another administrator has to approve this, as " + e.ApprovalID + ", before " + e.ExpiresAt.Format(time.RFC3339)
}
