package ledgertest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/ledger"
)

// cny is an amount in fen, a hundredth of a yuan: all amounts of the suite are
// in minor units.
func cny(amount int64) dibs.Money { return dibs.Money{Amount: amount, Currency: "CNY"} }

// packet stores a draft of a red packet with the shares given. The value of
// each share names its number and its amount, as campaigns.ShareValue writes
// it, so that crediting needs no other table.
func (f *fixture) packet(id, sender string, shares ...int64) *dibs.Campaign {
	f.t.Helper()
	return f.packetDraft(id, sender, 1, shares...)
}

// packetDraft is packet over several shards of the engine.
func (f *fixture) packetDraft(id, sender string, shards int, shares ...int64) *dibs.Campaign {
	f.t.Helper()
	c := campaign(id, int64(len(shares)))
	c.Kind, c.State, c.SenderID, c.LimitPerUser, c.Shards = dibs.RedPacket, dibs.Draft, sender, 1, shards
	c.Stock.Kind = dibs.Shares
	spec := dibs.RedPacketSpec{Total: cny(0), Count: int64(len(shares)), Max: 1 << 50}.WithDefaults()
	values := make([]string, len(shares))
	for i, amount := range shares {
		spec.Total.Amount += amount
		values[i] = campaigns.ShareValue(strconv.Itoa(i+1), amount)
	}
	c.Packet = &spec
	f.must(f.ledger().Campaigns.InsertCampaign(f.t.Context(), c, values))
	return c
}

// published stores a red packet and pays for it. The sender pays, or the
// platform when sender is empty: the total moves into escrow in the transaction
// that publishes the campaign.
func (f *fixture) published(id, sender string, shares ...int64) *dibs.Campaign {
	f.t.Helper()
	return f.publish(f.packet(id, sender, shares...))
}

// publish pays for a draft.
func (f *fixture) publish(c *dibs.Campaign) *dibs.Campaign {
	f.t.Helper()
	c.State = dibs.Published
	f.must(f.ledger().Campaigns.FundCampaign(f.t.Context(), c))
	return c
}

// deposit makes a deposit in fen, and reports whether it was a repeat.
func (f *fixture) deposit(user, ref string, amount int64) bool {
	f.t.Helper()
	replayed := try(f.ledger().Funds.Deposit(f.t.Context(), &funds.Deposit{UserID: user, Amount: cny(amount), Ref: ref, At: start})).must(f.t)
	return replayed
}

// has checks what a user has, in fen. A user without money may have no balance
// at all instead of one of 0.
func (f *fixture) has(user string, want int64) {
	f.t.Helper()
	got := try(f.ledger().Funds.Balances(f.t.Context(), user)).must(f.t)
	list := []dibs.Money{}
	if len(got) > 0 || want != 0 {
		list = append(list, cny(want))
	}
	same(f.t, "the balances of "+user, got, list)
}

// funds checks where a red packet's money is, and that its audit finds nothing
// amiss. The funded amount is always the sum of what was credited, returned and is still
// in escrow, so a fen that is missing shows at once.
func (f *fixture) funds(c *dibs.Campaign, credited, returned, escrow int64) *audit.CampaignAudit {
	f.t.Helper()
	got := try(f.ledger().Funds.PacketFunds(f.t.Context(), c.Number)).must(f.t)
	same(f.t, "credited, returned, in escrow", []int64{got.Credited, got.Returned, got.Escrow}, []int64{credited, returned, escrow})
	same(f.t, "funded", got.Funded, credited+returned+escrow)
	a := f.clean(c)
	p := a.Packet
	same(f.t, "what is at odds in the money of "+c.ID, p.Bad, nil)
	same(f.t, "the audit's money", []int64{p.Shares, p.Funded, p.Credited, p.Returned, p.Escrow}, []int64{p.Total, got.Funded, credited, returned, escrow})
	return a
}

// credit credits all that is settled. It stops at the first call that credits
// less than it may, as the service does.
func (f *fixture) credit(c *dibs.Campaign, most int) (n int) {
	f.t.Helper()
	for {
		now := try(f.ledger().Funds.CreditClaims(f.t.Context(), c, start, most)).must(f.t)
		if n += now; now < most {
			return n
		}
	}
}

// end ends a campaign for good. From then on no share can be claimed any more.
func (f *fixture) end(c *dibs.Campaign) {
	f.t.Helper()
	c.State = dibs.EndedState
	f.must(f.ledger().Campaigns.UpdateCampaign(f.t.Context(), c))
}

// comesHome tries to return the remainder. want says whether it did: false is
// right while it is too early and when it was done before.
func (f *fixture) comesHome(c *dibs.Campaign, want bool) {
	f.t.Helper()
	home := try(f.ledger().Funds.ReturnRemainder(f.t.Context(), c, start)).must(f.t)
	same(f.t, "whether the remainder of "+c.ID+" came home", home, want)
}

// testDeposits makes deposits once by their ref. A ref with another user,
// amount or currency is refused, and so is a balance that would leave the
// range. Postings are listed newest first. A payment provider repeats its
// notices: counted twice, a deposit would be money from nowhere.
func testDeposits(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.has("ann", 0)
	same(t, "the first time", f.deposit("ann", "d1", 700), false)
	same(t, "the second time", f.deposit("ann", "d1", 700), true)
	f.deposit("ann", "d2", 300)
	f.has("ann", 1000)
	for what, d := range map[string]funds.Deposit{
		"the ref of another user": {UserID: "bob", Amount: cny(700), Ref: "d1"},
		"another amount":          {UserID: "ann", Amount: cny(701), Ref: "d1"},
		"another currency":        {UserID: "ann", Amount: dibs.Money{Amount: 700, Currency: "USD"}, Ref: "d1"},
	} {
		wants(t, what, errOf(l.Funds.Deposit(ctx, &d)), dibs.ErrAlreadyExists)
	}
	// MaxMinor is 2^53: amounts above it lose digits in JSON readers.
	wants(t, "more than a balance holds",
		errOf(l.Funds.Deposit(ctx, &funds.Deposit{UserID: "ann", Amount: cny(dibs.MaxMinor - 1), Ref: "d3", At: start})), dibs.ErrInvalid)
	f.has("ann", 1000)
	f.has("bob", 0)
	f.must(errOf(l.Funds.Deposit(ctx, &funds.Deposit{UserID: "ann", Amount: dibs.Money{Amount: 5, Currency: "USD"}, Ref: "usd", At: start.Add(time.Second)})))
	got := try(l.Funds.Balances(ctx, "ann")).must(t)
	same(t, "balances in two currencies", got, []dibs.Money{cny(1000), {Amount: 5, Currency: "USD"}})

	page := try(l.Funds.Postings(ctx, "ann", dibs.Page{Limit: 2})).must(t)
	rest := try(l.Funds.Postings(ctx, "ann", dibs.Page{Limit: 2, Cursor: page.NextCursor})).must(t)
	var refs []string
	for _, p := range append(page.Items, rest.Items...) {
		refs = append(refs, fmt.Sprintf("%s %s %d %s %s", p.Kind, p.Ref, p.Amount, p.Currency, p.CampaignID))
	}
	same(t, "the postings", refs, []string{"deposit usd 5 USD ", "deposit d2 300 CNY ", "deposit d1 700 CNY "})
	same(t, "the end of the list", rest.NextCursor, "")
	wants(t, "a forged cursor", errOf(l.Funds.Postings(ctx, "ann", dibs.Page{Cursor: "!"})), dibs.ErrInvalid)
}

// testDepositRace makes one deposit from many sides: it counts once. 16 calls
// carry four refs, and so ann gets 40.
func testDepositRace(t *testing.T, f *fixture) {
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	f.together(16, func(i int) error {
		d := funds.Deposit{UserID: "ann", Amount: cny(10), Ref: strconv.Itoa(i / 4), At: start}
		return errOf(ledgers[i%2].Funds.Deposit(t.Context(), &d))
	})
	f.has("ann", 40)
}

// testPacketFunding moves the total of a red packet into escrow in the
// transaction that publishes it: with too little money neither happens. The
// platform may give more than it has. Users claim shares as soon as the
// campaign is public; without the money in escrow they would be promised what
// nobody has.
func testPacketFunding(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.deposit("ann", "d", 99)
	c := f.packet("c", "ann", 70, 30)
	got := try(l.Live.Campaign(ctx, "c")).must(t)
	same(t, "the campaign's red packet", *got.Packet, *c.Packet)
	same(t, "the sender", got.SenderID, "ann")
	f.funds(c, 0, 0, 0)
	// Refused for lack of money: state, version and balance are as before.
	draft := *c
	draft.State = dibs.Published
	wants(t, "fund it with too little", l.Campaigns.FundCampaign(ctx, &draft), dibs.ErrInsufficientFunds)
	got = try(l.Live.Campaign(ctx, "c")).must(t)
	same(t, "the state after that", got.State, dibs.Draft)
	same(t, "the version after that", got.Version, c.Version)
	f.has("ann", 99)
	f.deposit("ann", "d2", 51)
	// The same publication is sent twice, with one version: the money moves once.
	stale := draft
	f.must(l.Campaigns.FundCampaign(ctx, &draft))
	same(t, "the version", draft.Version, c.Version+1)
	wants(t, "fund it twice", l.Campaigns.FundCampaign(ctx, &stale), dibs.ErrConflict)
	f.has("ann", 50)
	f.funds(&draft, 0, 0, 100)

	// The platform may give what it has not.
	p := f.published("p", "", 5, 5, 5)
	f.funds(p, 0, 0, 15)
	// Behind says that settled claims wait to be credited, Left how many shares are
	// free.
	open := try(l.Funds.OpenPackets(ctx)).must(t)
	var ids []string
	for _, o := range open {
		ids = append(ids, fmt.Sprintf("%s %t %d", o.Campaign.ID, o.Behind, o.Left))
	}
	same(t, "the open red packets", ids, []string{"c false 2", "p false 3"})
	wants(t, "the funds of what is not there", errOf(l.Funds.PacketFunds(ctx, 999)), dibs.ErrNotFound)
}

// testPacketCredits credits shares in the order of the claims' places, across
// epochs, each once however often it is called. Crediting runs behind settling
// and keeps a place of its own, which moves in the transaction that writes the
// entries. It must pass over entries that are no grants, and over epochs
// without any.
func testPacketCredits(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.published("c", "", 10, 20, 30, 40, 50)
	load, s := f.load(c, 0)
	same(t, "the values of the shares", load.Items, []string{"1:10", "2:20", "3:30", "4:40", "5:50"})
	s.grant("u1", 1, 2)
	at := s.grant("u2", 1, 0)
	s.grant("u3", 1, 4)
	f.settle(s)
	claim := try(l.Claims.Claim(ctx, at)).must(t)
	same(t, "the claim's share", claim.Items, []string{"1:10"})
	open := try(l.Funds.OpenPackets(ctx)).must(t)
	same(t, "there is something to credit", fmt.Sprint(open[0].Behind, open[0].Left), "true 2")
	same(t, "claims that wait", f.funds(c, 0, 0, 150).Packet.Waiting, int64(3))
	// Two calls: two claims, then the last one.
	same(t, "credited at first", f.credit(c, 2), 3)
	same(t, "credited again", f.credit(c, 2), 0)
	f.has("u1", 30)
	f.has("u2", 10)
	f.has("u3", 50)
	f.funds(c, 90, 0, 60)
	// Too early: the campaign goes on, and shares are free.
	f.comesHome(c, false)

	// Epochs without a grant, and one with some.
	f.load(c, 0)
	_, s2 := f.load(c, 0)
	// The script is set to continue after what was settled, with an opening of
	// epoch 3.
	s2.from, s2.last = s.last, s.last
	s2.entries = nil
	s2.reopen(3)
	s2.grant("u4", 1, 1)
	s2.adjust("remainder from 1", -1, 3)
	// The engine has granted the fourth share and given the last free one up.
	f.settle(s2)
	f.comesHome(c, false)
	// Ended, but u4's claim is not credited yet: the remainder has to wait.
	f.end(c)
	f.comesHome(c, false)
	same(t, "credited at the end", f.credit(c, 100), 1)
	f.has("u4", 20)
	f.comesHome(c, true)
	f.comesHome(c, false)
	f.funds(c, 110, 40, 0)
	same(t, "open red packets at the end", len(try(l.Funds.OpenPackets(ctx)).must(t)), 0)
	postings := try(l.Funds.Postings(ctx, "u4", dibs.Page{})).must(t)
	same(t, "the posting", fmt.Sprintf("%s %s %d", postings.Items[0].Kind, postings.Items[0].CampaignID, postings.Items[0].Claim.Epoch), "credit c 3")
}

// testPacketReturn: the remainder is the sender's again, and once. Eight nodes
// try at the same time; two that both move the remainder would pay the sender
// twice.
func testPacketReturn(t *testing.T, f *fixture) {
	f.deposit("ann", "d", 100)
	c := f.published("c", "ann", 60, 40)
	f.has("ann", 0)
	_, s := f.load(c, 0)
	s.adjust("remainder from 2", -2, 0, 1)
	f.settle(s)
	f.end(c)
	f.credit(c, 10)
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	var won atomic.Int64
	f.together(8, func(i int) error {
		home, err := ledgers[i%2].Funds.ReturnRemainder(t.Context(), c, start)
		if home {
			won.Add(1)
		}
		return err
	})
	same(t, "those that returned it", won.Load(), 1)
	f.has("ann", 100)
	f.funds(c, 0, 100, 0)
}

// testPacketCreditRace credits from two connections at once, while claims are
// settled: each claim is credited once. Each amount differs, so a share that is
// credited twice and one that is left out cannot make up for each other. Users
// claim several shares here, which is why the audit gets a limit of 10.
func testPacketCreditRace(t *testing.T, f *fixture) {
	const shares = 240
	amounts := make([]int64, shares)
	sum := int64(0)
	for i := range amounts {
		amounts[i] = int64(i + 1)
		sum += amounts[i]
	}
	c := f.published("c", "", amounts...)
	_, s := f.load(c, 0)
	done := make(chan struct{})
	var all sync.WaitGroup
	for _, l := range []ledger.Ledger{f.ledger(), f.open()} {
		all.Go(func() {
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
				}
				if _, err := l.Funds.CreditClaims(t.Context(), c, start, 7); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range uint32(shares) {
		s.grant(fmt.Sprintf("u%d", i%100), 1, i)
		if i%20 == 19 {
			f.settle(s)
		}
	}
	close(done)
	all.Wait()
	f.credit(c, 1000)
	f.funds(&dibs.Campaign{
		Number: c.Number, ID: c.ID, Kind: c.Kind, State: c.State, Packet: c.Packet, Stock: c.Stock, LimitPerUser: 10,
	}, sum, 0, 0)
}

// testPacketReadmit: a claim that is settled after those behind it is credited
// with it, since no credit would look for it later. Crediting may have passed
// the claim's place already, or not yet: the claim must be credited once in
// either case.
func testPacketReadmit(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.published("c", "", 10, 20, 30, 40)
	_, s := f.load(c, 0)
	f.settle(s)
	bad := s.grant("u1", 1, 0)
	f.must(l.Live.Quarantine(ctx, s.batch(), "planted"))
	s.grant("u2", 1, 1)
	f.settle(s)
	// u2 is credited; the place is now beyond u1's claim, which is in quarantine.
	same(t, "credited", f.credit(c, 10), 1)
	f.end(c)
	f.comesHome(c, false)
	// Settling it credits it in the same transaction.
	f.must(l.Audit.Readmit(ctx, c, bad))
	f.has("u1", 10)
	same(t, "credited twice", f.credit(c, 10), 0)
	f.funds(c, 30, 0, 70)

	// One that no credit has passed yet waits its turn.
	early := s.grant("u3", 1, 2)
	f.must(l.Live.Quarantine(ctx, s.batch(), "planted"))
	f.must(l.Audit.Readmit(ctx, c, early))
	f.has("u3", 0)
	same(t, "credited in turn", f.credit(c, 10), 1)

	// Crediting has come as far as the last one, and no further.
	last := s.grant("u4", 1, 3)
	f.must(l.Live.Quarantine(ctx, s.batch(), "planted"))
	same(t, "credited while the last one is in quarantine", f.credit(c, 10), 0)
	f.must(l.Audit.Readmit(ctx, c, last))
	f.has("u4", 40)
	same(t, "credited twice", f.credit(c, 10), 0)
	f.comesHome(c, true)
	f.funds(c, 100, 0, 0)
}

// testPacketAmounts takes the largest sums there are. A share too large for the
// database is bad input: taken for a fault that passes, it would be tried again
// for ever.
func testPacketAmounts(t *testing.T, f *fixture) {
	const most = dibs.MaxMinor - 1
	f.deposit("ann", "d", most)
	spec := dibs.RedPacketSpec{Total: cny(most), Count: 2}.WithDefaults()
	c := campaign("c", 2)
	c.Kind, c.State, c.SenderID, c.Packet, c.Stock.Kind = dibs.RedPacket, dibs.Draft, "ann", &spec, dibs.Shares
	f.must(f.ledger().Campaigns.InsertCampaign(t.Context(), c, []string{campaigns.ShareValue("1", 1), campaigns.ShareValue("2", most-1)}))
	_, s := f.load(f.publish(c), 0)
	s.grant("bob", 1, 1)
	f.settle(s)
	f.credit(c, 10)
	f.has("bob", most-1)
	f.has("ann", 0)
	f.funds(c, most-1, 0, 1)
	err := f.ledger().Campaigns.InsertCampaign(t.Context(), &dibs.Campaign{
		ID: "bad", Kind: dibs.RedPacket, State: dibs.Draft, Packet: &spec, Stock: dibs.Stock{Kind: dibs.Shares, Total: 1}, LimitPerUser: 1, Shards: 1,
	}, []string{"1:" + strconv.FormatUint(math.MaxUint64, 10)})
	refuses(t, "a share beyond all bounds", err)
	var said *dibs.Error
	if errors.As(err, &said) && said.Reason == dibs.Unavailable {
		t.Errorf("a share beyond all bounds is taken for trouble that passes: %v", err)
	}
}
