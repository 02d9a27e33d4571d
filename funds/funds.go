package funds

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/live"
)

// Ledger keeps accounts.
type Ledger interface {
	// Deposit credits a user from outside, once by its Ref; true when that had
	// been done before. ErrAlreadyExists when the Ref is another deposit's; an
	// *Error of InvalidRequest when all that came in and that the platform gave would
	// reach MaxMinor: below it no account can overflow, and every share can be
	// credited.
	Deposit(ctx context.Context, d *Deposit) (replayed bool, err error)
	// Balances returns what a user has, by currency.
	Balances(ctx context.Context, user string) ([]dibs.Money, error)
	// Postings lists a user's entries, newest first.
	Postings(ctx context.Context, user string, page dibs.Page) (dibs.List[Posting], error)
	// PacketFunds returns where a red packet's money is. ErrNotFound.
	PacketFunds(ctx context.Context, campaign uint32) (PacketFunds, error)
	// OpenPackets lists the red packets that there is something to do for.
	OpenPackets(ctx context.Context) ([]*OpenPacket, error)
	// CreditClaims credits up to max settled claims that have not been, oldest
	// first, and returns how many; fewer than max when none is left. Several may
	// call it at once: each claim is credited once. It keeps no row from being
	// settled.
	CreditClaims(ctx context.Context, c *dibs.Campaign, at time.Time, max int) (int, error)
	// ReturnRemainder moves what is in escrow back, once, when the campaign has
	// been ended, every share is claimed or withdrawn, and every claim is
	// credited; true when it did. False, and no change, when it is too early or
	// was done before. ErrCorrupt when escrow is not what the withdrawn shares sum
	// to.
	ReturnRemainder(ctx context.Context, c *dibs.Campaign, at time.Time) (bool, error)
}

// Funds keeps users' money: deposits, and what red packets credit and return. All methods
// are safe for concurrent use; the ledger's transactions keep the sums right.
type Funds struct {
	registry   *live.Registry
	settler    *live.Settler
	loader     *live.Loader
	poller     *live.Poller
	quarantine *live.Quarantine
	campaigns  *campaigns.Campaigns
	engine     dibs.Engine
	ledger     Ledger
	ids        dibs.ClaimIDs
	log        *slog.Logger
	trouble    *trouble.Log
	now        func() time.Time
	every      time.Duration

	// packets schedules the work on red packets.
	packets  packetQueue
	credited atomic.Int64
}

// Config is what Funds is made of.
type Config struct {
	Live      *live.Node
	Campaigns *campaigns.Campaigns
	Engine    dibs.Engine
	Ledger    Ledger
	IDs       dibs.ClaimIDs
	Logger    *slog.Logger
	Now       func() time.Time
	// Every is how often shares that were claimed are looked for.
	Every time.Duration
}

// New returns Funds on a node.
func New(c Config) *Funds {
	return &Funds{
		registry: c.Live.Registry, settler: c.Live.Settler, loader: c.Live.Loader, poller: c.Live.Poller, quarantine: c.Live.Quarantine,
		campaigns: c.Campaigns, engine: c.Engine, ledger: c.Ledger, ids: c.IDs, log: c.Logger,
		trouble: trouble.New(c.Logger, slog.LevelError), now: c.Now, every: c.Every,
	}
}

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
	Amount dibs.Money
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
	Claim   dibs.Position
	ClaimID string
	At      time.Time
}

// OpenPacket is a red packet that was paid for and whose remainder has not
// gone back.
type OpenPacket struct {
	Campaign *dibs.Campaign
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

// DepositSpec is money that comes in from outside.
type DepositSpec struct {
	Amount dibs.Money `json:"amount" doc:"what came in, from 1 minor unit"`
	Ref    string     `json:"ref" doc:"the deposit's own name, 1-255 characters: the same one again changes nothing"`
}

// DepositView is a deposit as answered.
type DepositView struct {
	UserID string     `json:"user_id"`
	Amount dibs.Money `json:"amount"`
	Ref    string     `json:"ref"`
	// Balances are the user's after it, by currency.
	Balances []dibs.Money `json:"balances"`
}

// BalanceView is what a user has, by currency.
type BalanceView struct {
	Balances []dibs.Money `json:"balances"`
}

// PostingView is one entry of a user's account.
type PostingView struct {
	Kind TransferKind `json:"kind" enum:"deposit,fund,credit,return" doc:"deposit: came in from outside; fund: paid for a red packet; credit: a share of one; return: what was left of one"`
	// Amount is negative for what left the account.
	Amount     SignedMoney `json:"amount"`
	Ref        string      `json:"ref,omitempty"`
	CampaignID string      `json:"campaign_id,omitempty"`
	ClaimID    string      `json:"claim_id,omitempty"`
	At         time.Time   `json:"at"`
}

// SignedMoney is an amount of money that may be negative.
type SignedMoney struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Deposit puts money that came in from outside on a user's account, once by its
// ref; true when that had been done before. *Error of InvalidRequest, of
// AlreadyExists when the ref is another deposit's, or Unavailable: repeat it with
// the same ref.
func (s *Funds) Deposit(ctx context.Context, user string, d DepositSpec) (*DepositView, bool, error) {
	var fs []dibs.Fault
	if !dibs.IsID(user) {
		fs = append(fs, dibs.Fault{Field: "/user", Problem: dibs.BadID})
	}
	if d.Amount.Amount == 0 {
		fs = append(fs, dibs.Fault{Field: "/amount/amount", Problem: dibs.Textf("must be from 1 to %d", "必须在 1 到 %d 之间", dibs.MaxMinor-1)})
	}
	fs = append(fs, d.Amount.Faults("/amount")...)
	fs = append(fs, dibs.TextFault("/ref", d.Ref, true, dibs.MaxRefLen)...)
	if len(fs) > 0 {
		return nil, false, dibs.Invalid(fs...)
	}
	replayed, err := s.ledger.Deposit(ctx, &Deposit{UserID: user, Amount: d.Amount, Ref: d.Ref, At: dibs.Ms(s.now())})
	if err != nil {
		return nil, false, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	balances, err := s.ledger.Balances(ctx, user)
	if err != nil {
		return nil, false, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	return &DepositView{UserID: user, Amount: d.Amount, Ref: d.Ref, Balances: balances}, replayed, nil
}

// Balance returns what a user has, by currency; none for a user who never had
// anything.
func (s *Funds) Balance(ctx context.Context, user string) (*BalanceView, error) {
	if !dibs.IsID(user) {
		return nil, dibs.Invalid(dibs.Fault{Field: "/user", Problem: dibs.BadID})
	}
	balances, err := s.ledger.Balances(ctx, user)
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return &BalanceView{Balances: balances}, nil
}

// Postings lists the entries of a user's account, newest first.
func (s *Funds) Postings(ctx context.Context, user string, page dibs.Page) (dibs.List[PostingView], error) {
	var views dibs.List[PostingView]
	if !dibs.IsID(user) {
		return views, dibs.Invalid(dibs.Fault{Field: "/user", Problem: dibs.BadID})
	}
	list, err := s.ledger.Postings(ctx, user, page)
	if err != nil {
		return views, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	views.NextCursor = list.NextCursor
	views.Items = make([]PostingView, len(list.Items))
	for i := range list.Items {
		p := &list.Items[i]
		if p.Kind == TransferCredit {
			p.ClaimID = s.ids.Encode(p.Claim)
		}
		views.Items[i] = PostingView{
			Kind: p.Kind, Amount: SignedMoney{p.Amount, p.Currency}, Ref: p.Ref,
			CampaignID: p.CampaignID, ClaimID: p.ClaimID, At: p.At,
		}
	}
	return views, nil
}

// FundsView says where a red packet's money is; nil for other kinds.
func (s *Funds) FundsView(ctx context.Context, c *dibs.Campaign) (*api.FundsView, error) {
	if c.Kind != dibs.RedPacket {
		return nil, nil
	}
	f, err := s.ledger.PacketFunds(ctx, c.Number)
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	in := func(amount int64) dibs.Money { return dibs.Money{Amount: amount, Currency: f.Currency} }
	v := &api.FundsView{Funded: in(f.Funded), Credited: in(f.Credited), Returned: in(f.Returned), Escrow: in(f.Escrow)}
	if !f.ReturnedAt.IsZero() {
		v.ReturnedAt = &f.ReturnedAt
	} else {
		problem := s.packetProblem(c.Number)
		v.Problem, v.ProblemZH = problem.EN, problem.ZH
	}
	return v, nil
}

// Credited is how many shares this node credited since it started.
func (s *Funds) Credited() int64 { return s.credited.Load() }

// Stuck is how many red packets do not get on.
func (s *Funds) Stuck() int { return s.packets.troubled() }

// TryAgain has a red packet whose last attempt failed worked on at once.
func (s *Funds) TryAgain(number uint32) { s.packets.retryNow(number) }
