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

// moneyModel is what everybody should have, kept beside the ledger and not by
// it.
type moneyModel struct {
	f       *fixture
	r       *rand.Rand
	has     map[string]int64
	refs    map[string]funds.Deposit
	packets []*modelPacket
}

// modelPacket is a red packet of the model.
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
// illegal ones, and compares what everybody has with a model after each: no fen
// comes from nowhere, and none is lost.
func testMoney(t *testing.T, f *fixture) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &moneyModel{f: f, r: rand.New(rand.NewPCG(seed, 0)), has: map[string]int64{}, refs: map[string]funds.Deposit{}}
	for i := range moneySteps {
		what := m.step()
		for _, user := range []string{m.user(), m.user()} {
			f.has(user, m.has[user])
		}
		if t.Failed() {
			t.Fatalf("after step %d of seed %d: %s", i, seed, what)
		}
	}
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

// books checks that all accounts fit.
func (f *fixture) books() {
	f.t.Helper()
	bad, err := f.ledger().Audit.AuditAccounts(f.t.Context(), "CNY")
	f.must(err)
	same(f.t, "what does not fit in the accounts", bad, nil)
}

func (m *moneyModel) user() string { return "u" + strconv.Itoa(m.r.IntN(moneyUsers)) }

// step takes one random step and says which.
func (m *moneyModel) step() string {
	switch n := m.r.IntN(10); {
	case n < 2 || len(m.packets) == 0:
		return m.deposit()
	case n < 4 && len(m.packets) < 8:
		return m.publish()
	}
	p := m.packets[m.r.IntN(len(m.packets))]
	switch m.r.IntN(6) {
	case 0:
		return m.credit(p, 1+m.r.IntN(3))
	case 1:
		return m.end(p)
	case 2:
		return m.comeHome(p)
	case 3:
		_, p.s = m.reload(p)
		return "load " + p.c.ID
	}
	return m.grab(p)
}

// deposit deposits, or repeats a deposit, or takes its ref for another.
func (m *moneyModel) deposit() string {
	d := funds.Deposit{UserID: m.user(), Amount: cny(1 + m.r.Int64N(500)), Ref: "d" + strconv.Itoa(m.r.IntN(20)), At: start}
	if len(m.packets) == 0 {
		// Somebody has to have something.
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

// publish publishes a red packet of a user, or of the platform, who may have too
// little.
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

// reload loads a red packet anew: its epoch rises.
func (m *moneyModel) reload(p *modelPacket) (*dibs.ShardLoad, *script) {
	load, err := m.f.ledger().Live.LoadShard(m.f.t.Context(), p.c, p.s.shard, dibs.Opener{})
	m.f.must(err)
	s := &script{c: p.c, shard: p.s.shard, from: load.Position, last: load.Position}
	s.reopen(load.Epoch)
	return load, s
}

// grab grants the next share to somebody who has none, and settles it.
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

// credit credits some of what was settled.
func (m *moneyModel) credit(p *modelPacket, most int) string {
	n, err := m.f.ledger().Funds.CreditClaims(m.f.t.Context(), p.c, start, most)
	m.f.must(err)
	same(m.f.t, "credited", n, min(most, p.next-p.credited))
	for range n {
		amount := p.shares[p.credited]
		m.has[p.owners[p.credited]] += amount
		p.creditedSum += amount
		p.credited++
	}
	return fmt.Sprintf("credit %d of %s", n, p.c.ID)
}

// end ends a red packet, and withdraws what is free.
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

// comeHome returns the remainder, or is too early or too late.
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

// finish ends a red packet, credits all and returns the rest.
func (m *moneyModel) finish(p *modelPacket) {
	if !p.ended {
		_, p.s = m.reload(p)
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
// that no account can be too full for what it is owed.
func testMoneyBounds(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.deposit("ann", "d", dibs.MaxMinor-10)
	c := f.packet("c", "", 5, 5)
	tooMuch := *c
	tooMuch.State = dibs.Published
	wants(t, "the platform gives what nobody could hold", l.Campaigns.FundCampaign(ctx, &tooMuch), dibs.ErrInvalid)
	f.funds(c, 0, 0, 0)
	_, err := l.Funds.Deposit(ctx, &funds.Deposit{UserID: "bob", Amount: cny(10), Ref: "b", At: start})
	wants(t, "a deposit that nobody could hold", err, dibs.ErrInvalid)
	f.has("bob", 0)
	f.deposit("bob", "b", 1)
	p := f.published("p", "", 3, 5)
	_, s := f.load(p, 0)
	s.grant("ann", 1, 1)
	s.adjust("remainder from 1", -1, 0)
	f.settle(s)
	f.credit(p, 10)
	f.has("ann", dibs.MaxMinor-5)
	f.end(p)
	f.comesHome(p, true)
	_, err = l.Funds.Deposit(ctx, &funds.Deposit{UserID: "bob", Amount: cny(4), Ref: "b2", At: start})
	wants(t, "what came back leaves room, and no more", err, dibs.ErrInvalid)
	f.deposit("bob", "b3", 3)
	_, err = l.Funds.Deposit(ctx, &funds.Deposit{UserID: "bob", Amount: dibs.Money{Amount: dibs.MaxMinor - 1, Currency: "USD"}, Ref: "usd", At: start})
	f.must(err)
	f.books()
}
