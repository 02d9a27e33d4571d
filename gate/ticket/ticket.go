// Package ticket hands out tickets: short-lived sealed texts that a claim has to
// carry, and that nobody gets before the opening.
//
// # Basics
//
// [New] makes the tickets of all campaigns. They are a [dibs.Gate]: a claim on a
// campaign with tickets passes when it carries one that is its user's own, for
// this campaign, and not too old. Checking it takes the memory of this process
// alone. A campaign may have a ticket cost work, and a voucher of a human check.
//
// # Caveats
//
// A ticket may be used again while it is good, by its user alone. The campaign's limit
// per user bounds how much a user gets, and its other limits how often they ask. So nothing has to be remembered of tickets, on any node.
package ticket

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/seal"

	"github.com/dibs-dev/dibs/gate"
)

// Config configures tickets. Key is required.
type Config struct {
	// Key signs tickets and challenges: every node of a ledger has the same one. SetKey replaces it.
	Key []byte
	// HumanSecrets check the vouchers of a human check, JWTs by HS256: each of them is
	// good for a voucher; without one no voucher is good. At least MinSecret bytes each.
	HumanSecrets [][]byte
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// MinSecret is the least length of a human check's secret: HS256 is no stronger
// than its key.
const MinSecret = 32

const (
	// workFor is how long a challenge may be worked on.
	workFor = 5 * time.Minute
	// maxVoucherLife is the longest that a voucher may be good for from now on,
	// maxVoucherLen the longest text of one.
	maxVoucherLife = 15 * time.Minute
	maxVoucherLen  = 1024
	maxNonceLen    = 64
	// leeway is how far the clocks of the human check and of dibs may differ.
	leeway = 30 * time.Second
)

// Tickets are the tickets of all campaigns. It is safe for concurrent use.
type Tickets struct {
	now        func() time.Time
	tickets    *seal.Sealer
	challenges *seal.Sealer
	// secrets are replaced as a whole.
	secrets atomic.Pointer[jwt.VerificationKeySet]
	parser  *jwt.Parser
	counts  counts
}

var (
	_ dibs.Gate    = (*Tickets)(nil)
	_ gate.Tickets = (*Tickets)(nil)
)

// New returns tickets, or says what is wrong with the configuration.
func New(cfg Config) (*Tickets, error) {
	if len(cfg.Key) < seal.MinKey {
		return nil, fmt.Errorf("ticket: Config.Key must have at least %d bytes", seal.MinKey)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	t := &Tickets{
		now:     cfg.Now,
		tickets: seal.New(cfg.Key, "ticket"), challenges: seal.New(cfg.Key, "challenge"),
		parser: jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(cfg.Now)),
	}
	return t, t.SetHumanSecrets(cfg.HumanSecrets)
}

// SetHumanSecrets replaces the secrets of the human check, each of MinSecret bytes or more.
// Vouchers of those that are gone are refused from now on.
func (t *Tickets) SetHumanSecrets(secrets [][]byte) error {
	set := &jwt.VerificationKeySet{}
	for _, s := range secrets {
		if len(s) < MinSecret {
			return fmt.Errorf("ticket: a secret of the human check must have at least %d bytes", MinSecret)
		}
		set.Keys = append(set.Keys, s)
	}
	t.secrets.Store(set)
	return nil
}

// SetKey has another key sign tickets and challenges. Those of the key of until now are good until a time.
func (t *Tickets) SetKey(key []byte, until time.Time) error {
	return errors.Join(t.tickets.Renew(key, until), t.challenges.Renew(key, until))
}

var (
	fetchOne = dibs.Text{EN: "a claim needs a ticket: POST /v1/campaigns/{id}/tickets hands one out", ZH: "领取需要入场凭证：请先 POST /v1/campaigns/{id}/tickets"}
	tooOld   = dibs.Text{EN: "the ticket is no longer valid: fetch another one", ZH: "入场凭证已过期：请重新获取"}
	notYours = dibs.Text{EN: "this is no ticket of yours for this campaign", ZH: "该入场凭证不属于您或不属于此活动"}
)

// required is a refusal that a ticket would have prevented.
func required(en, zh string) error {
	return dibs.Fail(dibs.TicketRequired, dibs.Text{EN: en, ZH: zh})
}

// Pass implements dibs.Gate.
func (t *Tickets) Pass(_ context.Context, c *dibs.Campaign, req *dibs.ClaimRequest) (dibs.Result, bool) {
	if c.Gate.Ticket == nil {
		return dibs.Result{}, true
	}
	now := t.now()
	if reason, closed := c.Closed(now); closed {
		// There are no tickets now, and a client that is told that one is missing would look for
		// one in vain.
		return dibs.Result{Outcome: reason}, false
	}
	switch t.tickets.Open(req.Ticket, c.Number, req.UserID, now) {
	case seal.Valid:
		return dibs.Result{}, true
	case seal.Missing:
		t.counts.missing.Add(1)
		return dibs.Result{Outcome: dibs.TicketRequired, Detail: fetchOne}, false
	case seal.Expired:
		t.counts.expired.Add(1)
		return dibs.Result{Outcome: dibs.TicketRequired, Detail: tooOld}, false
	default:
		t.counts.foreign.Add(1)
		return dibs.Result{Outcome: dibs.TicketRequired, Detail: notYours}, false
	}
}

// open returns the campaign's tickets while they are handed out.
func (t *Tickets) open(c *dibs.Campaign, now time.Time) (*dibs.TicketSpec, error) {
	if c.Gate == nil || c.Gate.Ticket == nil || c.State == dibs.Draft {
		return nil, gate.NoTickets
	}
	if reason, closed := c.Closed(now); closed {
		return nil, &dibs.Error{Reason: reason}
	}
	return c.Gate.Ticket, nil
}

// Challenge implements gate.Tickets.
func (t *Tickets) Challenge(_ context.Context, c *dibs.Campaign, user string) (gate.Challenge, error) {
	now := t.now()
	spec, err := t.open(c, now)
	if err != nil {
		return gate.Challenge{}, err
	}
	t.counts.challenges.Add(1)
	ch := gate.Challenge{CampaignID: c.ID, Bits: spec.WorkBits, HumanCheck: spec.HumanCheck}
	if spec.WorkBits > 0 {
		until := now.Add(workFor).UTC().Truncate(time.Millisecond)
		ch.Challenge, ch.ExpiresAt = t.challenges.Seal(c.Number, user, until), &until
	}
	return ch, nil
}

// Ticket implements gate.Tickets.
func (t *Tickets) Ticket(_ context.Context, c *dibs.Campaign, user string, req gate.TicketRequest) (gate.TicketView, error) {
	now := t.now()
	spec, err := t.open(c, now)
	if err != nil {
		t.counts.early.Add(1)
		return gate.TicketView{}, err
	}
	if spec.WorkBits > 0 {
		if err := t.checkWork(c, user, spec.WorkBits, &req, now); err != nil {
			t.counts.workRefused.Add(1)
			return gate.TicketView{}, err
		}
	}
	if spec.HumanCheck != "" {
		if err := t.checkVoucher(c, user, req.Voucher, now); err != nil {
			t.counts.humanRefused.Add(1)
			return gate.TicketView{}, err
		}
	}
	until := now.Add(time.Duration(spec.Lifetime)).UTC().Truncate(time.Millisecond)
	t.counts.issued.Add(1)
	return gate.TicketView{CampaignID: c.ID, Ticket: t.tickets.Seal(c.Number, user, until), ExpiresAt: until}, nil
}

// checkWork checks the work: one seal and one hash.
func (t *Tickets) checkWork(c *dibs.Campaign, user string, need int, req *gate.TicketRequest, now time.Time) error {
	switch t.challenges.Open(req.Challenge, c.Number, user, now) {
	case seal.Valid:
	case seal.Missing:
		return required("a ticket costs work: POST /v1/campaigns/{id}/tickets/challenge tells what", "取票需要完成工作量证明：请先 POST /v1/campaigns/{id}/tickets/challenge")
	case seal.Expired:
		return required("the challenge is too old: fetch another one", "挑战已过期：请重新获取")
	default:
		return required("this is no challenge of yours for this campaign", "该挑战不属于您或不属于此活动")
	}
	if len(req.Nonce) > maxNonceLen {
		return dibs.Invalid(dibs.Fault{Field: "/nonce", Problem: dibs.Textf("must be at most %d characters", "最多 %d 个字符", maxNonceLen)})
	}
	if Work(req.Challenge, req.Nonce) < need {
		return required("the nonce does not solve the challenge", "该 nonce 未解出挑战")
	}
	return nil
}

// Work is how many leading zero bits the SHA-256 of challenge, colon and nonce
// has.
func Work(challenge, nonce string) int {
	sum := sha256.Sum256([]byte(challenge + ":" + nonce))
	zero := 0
	for _, b := range sum {
		zero += bits.LeadingZeros8(b)
		if b != 0 {
			break
		}
	}
	return zero
}

var errNotMeant = errors.New("ticket: the voucher is for somebody or something else")

// checkVoucher checks what the human check has signed: a JWT by HS256 whose sub
// is the user and whose aud is the campaign.
func (t *Tickets) checkVoucher(c *dibs.Campaign, user, voucher string, now time.Time) error {
	if voucher == "" {
		return required("a ticket needs a voucher of the human check: "+c.Gate.Ticket.HumanCheck, "取票需要通过人机验证："+c.Gate.Ticket.HumanCheck)
	}
	if err := t.voucher(c, user, voucher, now); err != nil {
		return &dibs.Error{Reason: dibs.TicketRequired, Cause: err, Detail: dibs.Text{
			EN: "the voucher of the human check is not valid, not yours, or too old", ZH: "人机验证凭据无效、不属于您或已过期",
		}}
	}
	return nil
}

func (t *Tickets) voucher(c *dibs.Campaign, user, voucher string, now time.Time) error {
	secrets := t.secrets.Load()
	if len(secrets.Keys) == 0 || len(voucher) > maxVoucherLen {
		return errNotMeant
	}
	var claims jwt.RegisteredClaims
	if _, err := t.parser.ParseWithClaims(voucher, &claims, func(*jwt.Token) (any, error) { return *secrets, nil }); err != nil {
		return err
	}
	if claims.Subject != user || len(claims.Audience) != 1 || claims.Audience[0] != c.ID || claims.ExpiresAt.After(now.Add(maxVoucherLife)) {
		return errNotMeant
	}
	return nil
}
