package ledgertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/funds"
)

// moneySteps is how many random steps of money a ledger is taken through, and
// moneyUsers how many users have a part in them.
const (
	moneySteps = 120
	moneyUsers = 6
)

// moneyModel is what every account should have, kept beside the ledger and not
// by it. has are the balances in fen, refs the deposits made by their refs, and
// packets the red packets that were published. One goroutine uses it.
type moneyModel struct {
	f       *fixture
	r       *rand.Rand
	has     map[string]int64
	refs    map[string]funds.Deposit
	packets []*modelPacket
}

// modelPacket is a red packet of the model. Shares are claimed in the order of
// their numbers: those before next have an owner each, in owners, and those
// before credited are credited. sum is the total, creditedSum and returned what
// went where, all in fen. ended says that no share can be claimed any more,
// home that the remainder was returned.
type modelPacket struct {
	c      *dibs.Campaign
	s      *script
	shares []int64
	// next is the first share that is free; owners are those of the others.
	next                       int
	credited                   int
	owners                     []string
	ended, home                bool
	creditedSum, returned, sum int64
}

// testMoney takes accounts and red packets through random steps, legal and
// illegal ones, and compares every balance with a model after each: no fen
// comes from nowhere, and none is lost. The other tests hold one rule each;
// this one finds steps that are right alone and wrong together, such as a load
// between a grant and its credit. The seed gives the same steps again.
func testMoney(t *testing.T, f *fixture) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &moneyModel{f: f, r: rand.New(rand.NewPCG(seed, 0)), has: map[string]int64{}, refs: map[string]funds.Deposit{}}
	for i := range moneySteps {
		what := m.step()
		// Two balances after each step keep the test short and the failing step near.
		for _, user := range []string{m.user(), m.user()} {
			f.has(user, m.has[user])
		}
		if t.Failed() {
			t.Fatalf("after step %d of seed %d: %s", i, seed, what)
		}
	}
	// At the end every packet is closed, and nothing may be in escrow.
	for _, p := range m.packets {
		m.finish(p)
		f.funds(p.c, p.creditedSum, p.returned, 0)
	}
	for i := range moneyUsers {
		user := "u" + strconv.Itoa(i)
		f.has(user, m.has[user])
	}
	f.books()
}

// books checks that all accounts fit. Balances are compared with their entries,
// and all accounts, escrow and the world outside among them, sum to zero.
func (f *fixture) books() {
	f.t.Helper()
	bad := try(f.ledger().Audit.AuditAccounts(f.t.Context(), "CNY")).must(f.t)
	same(f.t, "what does not fit in the accounts", bad, nil)
}

// user picks a user.
func (m *moneyModel) user() string { return "u" + strconv.Itoa(m.r.IntN(moneyUsers)) }

// step takes one random step and says which.
func (m *moneyModel) step() string {
	switch n := m.r.IntN(10); {
	case n < 2 || len(m.packets) == 0:
		return m.deposit()
	case n < 4 && len(m.packets) < 8:
		return m.publish()
	}
	// The rest are steps of one packet, most of them claims of shares.
	p := m.packets[m.r.IntN(len(m.packets))]
	switch m.r.IntN(6) {
	case 0:
		return m.credit(p, 1+m.r.IntN(3))
	case 1:
		return m.end(p)
	case 2:
		return m.comeHome(p)
	case 3:
		// Its epoch rises. Crediting has to go on across epochs, in which places begin at
		// seq 1 again.
		_, p.s = m.f.load(p.c, 0)
		return "load " + p.c.ID
	}
	return m.grab(p)
}

// deposit deposits, or repeats a deposit, or takes its ref for another. A ref
// that is known either repeats its own deposit or is refused for another.
func (m *moneyModel) deposit() string {
	d := funds.Deposit{UserID: m.user(), Amount: cny(1 + m.r.Int64N(500)), Ref: "d" + strconv.Itoa(m.r.IntN(20)), At: start}
	if len(m.packets) == 0 {
		// Some user has to have something.
		d.Ref = "first-" + d.UserID
	}
	before, known := m.refs[d.Ref]
	if known && m.r.IntN(2) == 0 {
		d = before
	}
	replayed, err := m.f.ledger().Funds.Deposit(m.f.t.Context(), &d)
	switch {
	case known && d == before:
		m.f.must(err)
		same(m.f.t, "a deposit again is a repeat", replayed, true)
	case known:
		wants(m.f.t, "the ref of another deposit", err, dibs.ErrAlreadyExists)
	default:
		m.f.must(err)
		m.refs[d.Ref] = d
		m.has[d.UserID] += d.Amount.Amount
	}
	if len(m.packets) == 0 && m.has[d.UserID] > 0 {
		m.publish()
	}
	return fmt.Sprintf("deposit %+v", d)
}

// publish publishes a red packet of a user, or of the platform, who may have
// too little. A sender with too little is refused, and the draft stays a draft.
func (m *moneyModel) publish() string {
	p := &modelPacket{}
	for range 1 + m.r.IntN(5) {
		p.shares = append(p.shares, 1+m.r.Int64N(100))
		p.sum += p.shares[len(p.shares)-1]
	}
	sender := ""
	if m.r.IntN(4) > 0 {
		sender = m.user()
	}
	p.c = m.f.packet("p"+strconv.Itoa(m.r.Int()), sender, p.shares...)
	draft := *p.c
	draft.State = dibs.Published
	err := m.f.ledger().Campaigns.FundCampaign(m.f.t.Context(), &draft)
	if sender != "" && m.has[sender] < p.sum {
		wants(m.f.t, "a red packet that its sender cannot pay", err, dibs.ErrInsufficientFunds)
		return "refused " + p.c.ID
	}
	m.f.must(err)
	if sender != "" {
		m.has[sender] -= p.sum
	}
	p.c = &draft
	_, p.s = m.f.load(p.c, 0)
	m.packets = append(m.packets, p)
	return fmt.Sprintf("publish %s of %q, %d", p.c.ID, sender, p.sum)
}

// grab grants the next share to a user without one, and settles it. A red
// packet gives one share to a user; the model keeps to that as an engine does.
func (m *moneyModel) grab(p *modelPacket) string {
	if p.ended || p.next == len(p.shares) {
		return "nothing to grab"
	}
	user := "u" + strconv.Itoa((p.next+m.r.IntN(2)*3)%moneyUsers)
	for _, has := range p.owners {
		if has == user {
			return "has one already"
		}
	}
	p.s.grant(user, 1, uint32(p.next))
	m.f.settle(p.s)
	p.owners, p.next = append(p.owners, user), p.next+1
	return fmt.Sprintf("grab of %s by %s", p.c.ID, user)
}

// credit credits some of what was settled. Claims are credited in the order of
// their places, so the model knows whose they are.
func (m *moneyModel) credit(p *modelPacket, most int) string {
	n := try(m.f.ledger().Funds.CreditClaims(m.f.t.Context(), p.c, start, most)).must(m.f.t)
	same(m.f.t, "credited", n, min(most, p.next-p.credited))
	for range n {
		amount := p.shares[p.credited]
		m.has[p.owners[p.credited]] += amount
		p.creditedSum += amount
		p.credited++
	}
	return fmt.Sprintf("credit %d of %s", n, p.c.ID)
}

// end ends a red packet, and withdraws what is free. The engine gives up its
// free shares by a withdrawal, whose entry settles as any other.
func (m *moneyModel) end(p *modelPacket) string {
	if p.ended {
		return "has ended"
	}
	p.ended = true
	m.f.end(p.c)
	var free []uint32
	for n := p.next; n < len(p.shares); n++ {
		free = append(free, uint32(n))
	}
	if len(free) > 0 {
		p.s.adjust("remainder", -int64(len(free)), free...)
	}
	if len(p.s.entries) > 0 {
		m.f.settle(p.s)
	}
	return "end " + p.c.ID
}

// comeHome returns the remainder, or is too early or too late. Whenever it does
// come home, the packet has ended, everything is credited, and it was not done
// before.
func (m *moneyModel) comeHome(p *modelPacket) string {
	home, err := m.f.ledger().Funds.ReturnRemainder(m.f.t.Context(), p.c, start)
	if errors.Is(err, dibs.ErrConflict) {
		err = nil
	}
	m.f.must(err)
	// A place behind the last claim may have to be passed first.
	if home {
		same(m.f.t, "it may come home", []bool{p.ended, p.home, p.credited == p.next}, []bool{true, false, true})
		p.home, p.returned = true, p.sum-p.creditedSum
		if p.c.SenderID != "" {
			m.has[p.c.SenderID] += p.returned
		}
	}
	return fmt.Sprintf("the rest of %s is home: %t", p.c.ID, home)
}

// finish ends a red packet, credits all and returns the rest. The epoch is a
// new one, as when a node starts again after the end.
func (m *moneyModel) finish(p *modelPacket) {
	if !p.ended {
		_, p.s = m.f.load(p.c, 0)
		m.end(p)
	}
	for p.credited < p.next {
		m.credit(p, 100)
	}
	m.f.credit(p.c, 100)
	m.comeHome(p)
	same(m.f.t, "the rest of "+p.c.ID+" is home in the end", p.home, true)
}

// testMoneyBounds: what there is of a currency stays below 2^53 altogether, so
// that no account can be too full for what it is owed. The platform's gifts
// count as well. Refusing a deposit is possible; refusing to credit a share
// that was won is not.
func testMoneyBounds(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.deposit("ann", "d", dibs.MaxMinor-10)
	c := f.packet("c", "", 5, 5)
	tooMuch := *c
	tooMuch.State = dibs.Published
	wants(t, "the platform gives more than an account can hold", l.Campaigns.FundCampaign(ctx, &tooMuch), dibs.ErrInvalid)
	f.funds(c, 0, 0, 0)
	wants(t, "a deposit of more than an account can hold",
		errOf(l.Funds.Deposit(ctx, &funds.Deposit{UserID: "bob", Amount: cny(10), Ref: "b", At: start})), dibs.ErrInvalid)
	f.has("bob", 0)
	f.deposit("bob", "b", 1)
	p := f.published("p", "", 3, 5)
	_, s := f.load(p, 0)
	s.grant("ann", 1, 1)
	s.adjust("remainder from 1", -1, 0)
	f.settle(s)
	f.credit(p, 10)
	// ann has MaxMinor-10 and her share of 5; the share of 3 goes back to the
	// platform and leaves room for as much.
	f.has("ann", dibs.MaxMinor-5)
	f.end(p)
	f.comesHome(p, true)
	wants(t, "what came back leaves room, and no more",
		errOf(l.Funds.Deposit(ctx, &funds.Deposit{UserID: "bob", Amount: cny(4), Ref: "b2", At: start})), dibs.ErrInvalid)
	f.deposit("bob", "b3", 3)
	f.must(errOf(l.Funds.Deposit(ctx, &funds.Deposit{UserID: "bob", Amount: dibs.Money{Amount: dibs.MaxMinor - 1, Currency: "USD"}, Ref: "usd", At: start})))
	f.books()
}
