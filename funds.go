package dibs

import (
	"context"
	"time"
)

// AccountKind is whose an account is.
type AccountKind string

// The account kinds. All accounts of a currency sum to zero, always.
const (
	// UserAccount holds what is a user's. It never goes below zero.
	UserAccount AccountKind = "user"
	// EscrowAccount holds what of a red packet is neither credited nor returned;
	// its owner is the campaign.
	EscrowAccount AccountKind = "escrow"
	// PlatformAccount pays for red packets without a sender. It may go below
	// zero: that is what the platform has given away.
	PlatformAccount AccountKind = "platform"
	// OutsideAccount is the world that deposits come from: its balance is what
	// came in, below zero.
	OutsideAccount AccountKind = "outside"
)

// TransferKind is why money moved from one account to another.
type TransferKind string

// The transfer kinds.
const (
	// TransferDeposit: money came in from outside.
	TransferDeposit TransferKind = "deposit"
	// TransferFund: a red packet was published, its total is in escrow.
	TransferFund TransferKind = "fund"
	// TransferCredit: a share was credited to the user who claimed it.
	TransferCredit TransferKind = "credit"
	// TransferReturn: what was left of a red packet went back.
	TransferReturn TransferKind = "return"
)

// Deposit is money that comes in from outside, for a user.
type Deposit struct {
	UserID string
	Amount Money
	// Ref makes it happen once.
	Ref string
	At  time.Time
}

// Posting is one side of a transfer, as its account's holder sees it.
type Posting struct {
	Kind TransferKind
	// Amount is in minor units, negative for what left the account.
	Amount   int64
	Currency string
	// Ref is a deposit's, else empty.
	Ref string
	// CampaignID is the red packet's, empty for a deposit.
	CampaignID string
	// Claim is the claim that a credit is for, else zero; ClaimID is its id, which
	// the service fills in.
	Claim   Position
	ClaimID string
	At      time.Time
}

// PacketFunds is where a red packet's money is, in minor units: Funded =
// Credited + Returned + Escrow.
type PacketFunds struct {
	Currency string
	// Funded is 0 until the red packet is published.
	Funded   int64
	Credited int64
	Returned int64
	Escrow   int64
	// ReturnedAt is when the remainder went back, all being credited by then;
	// zero while the red packet is open.
	ReturnedAt time.Time
}

// OpenPacket is a red packet that was paid for and whose remainder has not
// gone back.
type OpenPacket struct {
	Campaign *Campaign
	// Behind says that the journal was settled further than its claims were
	// credited.
	Behind bool
	// Left counts the shares that are neither claimed nor withdrawn.
	Left int64
}

// PacketAudit is what the rows of a red packet's money add up to, in minor
// units.
type PacketAudit struct {
	// Total is what the shares should sum to, and Shares what they do.
	Total, Shares int64
	// Count is how many shares there are.
	Count int64
	PacketFunds
	// Waiting counts claims that are still to be credited.
	Waiting int64
	// Bad says what does not fit, at most 10, in words.
	Bad []string
}

// Funds keeps accounts, by double entry: every transfer is two entries that sum
// to zero, and neither ever changes.
type Funds interface {
	// Deposit credits a user from outside, once by its Ref; true when that had
	// been done before. ErrAlreadyExists when the Ref is another deposit's; an
	// *Error of InvalidRequest when all that came in and that the platform gave would
	// reach MaxMinor: below it no account can overflow, and every share can be
	// credited.
	Deposit(ctx context.Context, d *Deposit) (replayed bool, err error)
	// Balances returns what a user has, by currency.
	Balances(ctx context.Context, user string) ([]Money, error)
	// Postings lists a user's entries, newest first.
	Postings(ctx context.Context, user string, page Page) (List[Posting], error)

	// FundCampaign is UpdateCampaign for a red packet that is being published: in
	// the same transaction its total moves from the sender, or the platform, into
	// escrow. An *Error of InsufficientFunds, and no change, when the sender has
	// less; of InvalidRequest as in Deposit.
	FundCampaign(ctx context.Context, c *Campaign) error
	// PacketFunds returns where a red packet's money is. ErrNotFound.
	PacketFunds(ctx context.Context, campaign uint32) (PacketFunds, error)
	// OpenPackets lists the red packets that there is something to do for.
	OpenPackets(ctx context.Context) ([]*OpenPacket, error)
	// CreditClaims credits up to max settled claims that have not been, oldest
	// first, and returns how many; fewer than max when none is left. Several may
	// call it at once: each claim is credited once. It keeps no row from being
	// settled.
	CreditClaims(ctx context.Context, c *Campaign, at time.Time, max int) (int, error)
	// ReturnRemainder moves what is in escrow back, once, when the campaign has
	// been ended, every share is claimed or withdrawn, and every claim is
	// credited; true when it did. False, and no change, when it is too early or
	// was done before. ErrCorrupt when escrow is not what the withdrawn shares sum
	// to.
	ReturnRemainder(ctx context.Context, c *Campaign, at time.Time) (bool, error)
	// AuditAccounts compares all accounts of a currency with their entries, and
	// their sum with zero; it returns what does not fit, at most 10, in words.
	AuditAccounts(ctx context.Context, currency string) ([]string, error)
}
