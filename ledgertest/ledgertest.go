// Package ledgertest is the contract of a ledger and of a journal store, as
// tests: every implementation runs [Run] or [RunJournal] and adds only what is
// its own.
package ledgertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/ledger"
)

// Factory makes a new, empty ledger, ready for use, and returns a function that
// opens it. Each call of that function opens the same ledger once more, as
// another node would. The suite closes what it opens.
type Factory func(t *testing.T) (open func() ledger.Ledger)

// contract lists the behaviours that every ledger has.
var contract = []struct {
	name string
	run  func(*testing.T, *fixture)
}{
	{"Products", testProducts},
	{"Campaigns", testCampaigns},
	{"CampaignLists", testCampaignLists},
	{"CampaignChanges", testCampaignChanges},
	{"Items", testItems},
	{"Shards", testShards},
	{"LoadShard", testLoadShard},
	{"LoadItems", testLoadItems},
	{"LoadUnknown", testLoadUnknown},
	{"Epochs", testEpochs},
	{"Settle", testSettle},
	{"SettleKinds", testSettleKinds},
	{"SettleItems", testSettleItems},
	{"SettleMany", testSettleMany},
	{"SettleTwice", testSettleTwice},
	{"SettleGaps", testSettleGaps},
	{"SettleAllOrNothing", testSettleAllOrNothing},
	{"SettleRefusesOversell", testSettleRefusesOversell},
	{"SettleRefusesTakenItem", testSettleRefusesTakenItem},
	{"SettleRace", testSettleRace},
	{"EpochFence", testEpochFence},
	{"FenceCommands", testFenceCommands},
	{"Elsewhere", testElsewhere},
	{"SkipTo", testSkipTo},
	{"Quarantine", testQuarantine},
	{"Unreadable", testUnreadable},
	{"QuarantineItems", testQuarantineItems},
	{"QuarantineWithdrawal", testQuarantineWithdrawal},
	{"QuarantineRefused", testQuarantineRefused},
	{"QuarantineRace", testQuarantineRace},
	{"Readmit", testReadmit},
	{"ReadmitWithdrawal", testReadmitWithdrawal},
	{"Recount", testRecount},
	{"Withdraw", testWithdraw},
	{"WithdrawFromDraft", testWithdrawFromDraft},
	{"Restock", testRestock},
	{"RestockItems", testRestockItems},
	{"RestockRefused", testRestockRefused},
	{"RestockRace", testRestockRace},
	{"Commands", testCommands},
	{"LowStock", testLowStock},
	{"Import", testImport},
	{"ImportRefused", testImportRefused},
	{"ImportRace", testImportRace},
	{"LivesConfirm", testLivesConfirm},
	{"LivesRelease", testLivesRelease},
	{"LivesItems", testLivesItems},
	{"LivesExpire", testLivesExpire},
	{"LivesExpireRace", testLivesExpireRace},
	{"LivesRefund", testLivesRefund},
	{"LivesRedeem", testLivesRedeem},
	{"LivesGroups", testLivesGroups},
	{"LivesMany", testLivesMany},
	{"LivesRace", testLivesRace},
	{"LivesLoad", testLivesLoad},
	{"LivesLinear", testLivesLinear},
	{"Deposits", testDeposits},
	{"DepositRace", testDepositRace},
	{"PacketFunding", testPacketFunding},
	{"PacketCredits", testPacketCredits},
	{"PacketReturn", testPacketReturn},
	{"PacketCreditRace", testPacketCreditRace},
	{"PacketReadmit", testPacketReadmit},
	{"PacketAmounts", testPacketAmounts},
	{"Money", testMoney},
	{"MoneyBounds", testMoneyBounds},
	{"Claims", testClaims},
	{"ClaimLists", testClaimLists},
	{"Orders", testOrders},
	{"Regular", testRegular},
	{"RegularRace", testRegularRace},
	{"Keys", testKeys},
	{"Requests", testRequests},
	{"Secrets", testSecrets},
	{"Trail", testTrail},
	{"Audiences", testAudiences},
	{"Followers", testFollowers},
	{"FollowersRace", testFollowersRace},
	{"AnnouncementAtOnce", testAnnouncementAtOnce},
	{"AnnouncementQueue", testAnnouncementQueue},
	{"AnnouncementMoves", testAnnouncementMoves},
	{"AnnouncementRace", testAnnouncementRace},
	{"Feed", testFeed},
	{"FeedItems", testFeedItems},
	{"FeedRace", testFeedRace},
	{"Sinks", testSinks},
	{"Endpoints", testEndpoints},
	{"Deliveries", testDeliveries},
	{"Failing", testFailing},
	{"ManyDeliveries", testManyDeliveries},
	{"EndpointsRace", testEndpointsRace},
	{"Lotteries", testLotteries},
	{"LotteryEntries", testLotteryEntries},
	{"LotteryClosing", testLotteryClosing},
	{"Rooms", testRooms},
	{"Erasures", testErasures},
	{"EraseClaims", testEraseClaims},
	{"EraseMoney", testEraseMoney},
	{"EraseFollows", testEraseFollows},
	{"EraseTexts", testEraseTexts},
	{"EraseAnnounced", testEraseAnnounced},
	{"EraseRooms", testEraseRooms},
	{"Audit", testAudit},
	{"Lifetime", testLifetime},
}

// Run checks the contract of dibs.Ledger on ledgers of the factory. It takes
// some seconds.
func Run(t *testing.T, factory Factory) {
	for _, test := range contract {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, &fixture{t: t, open: opener(t, factory(t))})
		})
	}
}

// opener closes at the test's end what open returns.
func opener(t *testing.T, open func() ledger.Ledger) func() ledger.Ledger {
	return func() ledger.Ledger {
		l := open()
		t.Cleanup(func() {
			if err := l.Database.Close(); err != nil {
				t.Errorf("close the ledger: %v", err)
			}
		})
		return l
	}
}

// fixture is one test's ledger.
type fixture struct {
	t    *testing.T
	open func() ledger.Ledger
	l    ledger.Ledger
}

// ledger opens the ledger once and returns it.
func (f *fixture) ledger() ledger.Ledger {
	if f.l.Live == nil {
		f.l = f.open()
	}
	return f.l
}

// start is when the tests' clocks begin.
var start = time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)

// campaign returns a published sale of units that is not stored yet.
func campaign(id string, stock int64) *dibs.Campaign {
	return &dibs.Campaign{
		ID: id, Kind: dibs.Sale, Title: "Phone at noon 手机", StartsAt: start, EndsAt: start.Add(2 * time.Hour),
		State: dibs.Published, Stock: dibs.Stock{Kind: dibs.Units, Total: stock}, LimitPerUser: 5,
		LatePayment: dibs.Reclaim, Shards: 1, Version: 1, CreatedAt: start, UpdatedAt: start,
	}
}

// values returns n different items.
func values(prefix string, n int) []string {
	vs := make([]string, n)
	for i := range vs {
		vs[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return vs
}

// insert stores a campaign with a stock of units.
func (f *fixture) insert(c *dibs.Campaign) *dibs.Campaign {
	f.t.Helper()
	f.must(f.ledger().Campaigns.InsertCampaign(f.t.Context(), c, nil))
	return c
}

// insertItems stores a campaign whose stock is items.
func (f *fixture) insertItems(c *dibs.Campaign, items []string) *dibs.Campaign {
	f.t.Helper()
	c.Stock = dibs.Stock{Kind: dibs.Items, Total: int64(len(items))}
	f.must(f.ledger().Campaigns.InsertCampaign(f.t.Context(), c, items))
	return c
}

// load loads a shard and returns the load with a script that continues it.
func (f *fixture) load(c *dibs.Campaign, shard uint8) (*dibs.ShardLoad, *script) {
	f.t.Helper()
	id := dibs.ShardID{Campaign: c.Number, Shard: shard}
	load, err := f.ledger().Live.LoadShard(f.t.Context(), c, id, dibs.Opener{})
	f.must(err)
	s := &script{c: c, shard: id, from: load.Position, last: load.Position}
	s.reopen(load.Epoch)
	return load, s
}

// settle settles what the scripts hold.
func (f *fixture) settle(scripts ...*script) {
	f.t.Helper()
	var batches []dibs.Batch
	for _, s := range scripts {
		batches = append(batches, s.batch())
	}
	f.must(f.ledger().Live.Settle(f.t.Context(), batches))
}

// totals reads a shard's sums.
func (f *fixture) totals(c *dibs.Campaign, shard uint8) dibs.ShardTotals {
	f.t.Helper()
	got, err := f.ledger().Live.Totals(f.t.Context(), dibs.ShardID{Campaign: c.Number, Shard: shard})
	f.must(err)
	return got
}

// clean audits the campaign and fails on anything amiss.
func (f *fixture) clean(c *dibs.Campaign) *audit.CampaignAudit {
	f.t.Helper()
	a, err := f.ledger().Audit.Audit(f.t.Context(), c)
	f.must(err)
	if len(a.OverLimit)+len(a.BadItems)+len(a.BadTotals)+len(a.BadLives) > 0 || a.BeyondPosition != 0 {
		f.t.Errorf("the audit of %s: over limit %v, items %v, totals %v, lives %v, beyond the position %d",
			c.ID, a.OverLimit, a.BadItems, a.BadTotals, a.BadLives, a.BeyondPosition)
	}
	if a.Stock != a.StockLeft+a.Held+a.Withheld || !a.SumsAgree {
		f.t.Errorf("the audit of %s: stock %d is not left %d, held %d and withheld %d; the sums agree: %t",
			c.ID, a.Stock, a.StockLeft, a.Held, a.Withheld, a.SumsAgree)
	}
	return a
}

// must fails the test at once on an error.
func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// wants checks that an error is the wanted one.
func wants(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// refuses checks that there is an error.
func refuses(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
	}
}

// same checks that two values are alike, by their printed form.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
