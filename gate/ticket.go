package gate

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
)

// Challenge is work that a ticket costs: find a Nonce so that the SHA-256 of
// Challenge, a colon and the Nonce begins with Bits zero bits.
type Challenge struct {
	CampaignID string `json:"campaign_id"`
	// Challenge is bound to the user, the campaign and the time; empty when the
	// campaign asks for no work.
	Challenge string `json:"challenge,omitempty"`
	// Bits is the number of leading zero bits, 0 for no work.
	Bits int `json:"bits"`
	// HumanCheck is the page that hands out vouchers; empty when none is asked for.
	HumanCheck string     `json:"human_check,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
}

// TicketRequest asks for a ticket with what the campaign wants of it.
type TicketRequest struct {
	Challenge string `json:"challenge,omitempty" doc:"the challenge that was worked on"`
	Nonce     string `json:"nonce,omitempty" doc:"the answer to it, 1-64 visible characters"`
	Voucher   string `json:"voucher,omitempty" doc:"what the human check has handed out"`
}

// TicketView is a ticket as it is handed out.
type TicketView struct {
	CampaignID string    `json:"campaign_id"`
	Ticket     string    `json:"ticket"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Tickets hands out tickets. Its methods are safe for concurrent use.
type Tickets interface {
	// Challenge tells what a ticket costs. *Error of NotStarted, Paused or Ended
	// outside of the campaign's window, of NotFound when it has no tickets.
	Challenge(ctx context.Context, c *dibs.Campaign, user string) (Challenge, error)
	// Ticket hands a ticket out. *Error as Challenge, and of TicketRequired when
	// work or voucher are missing, wrong, too late or another user's.
	Ticket(ctx context.Context, c *dibs.Campaign, user string, req TicketRequest) (TicketView, error)
}
