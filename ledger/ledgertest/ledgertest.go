// Package ledgertest is the contract of a ledger and of a journal store, as
// tests: every implementation runs [Run] or [RunJournal] and adds only what is
// its own:
//
//	func TestContract(t *testing.T) {
//		ledgertest.Run(t, newLedger)
//	}
//
// # Basics
//
// A Factory makes an empty ledger for each test and returns a function that
// opens it as often as the test asks: once for one node, two or three times for
// a race between nodes. The tests play the engine themselves: a script writes a
// shard's journal, place by place, and the test settles it in batches.
//
// Most tests end in an audit of the campaign. So a behaviour is checked twice:
// by what the test asks for, and by claims, sums, items and stock, which must
// agree with one another.
//
// # What an implementation must do
//
// Each call is one transaction: it happens as a whole or not at all. Callers
// repeat a call when its answer was lost, so the transaction itself recognises
// a repeat, by a position, a version, a ref or a key, and changes nothing then.
// Several nodes may make the same call at the same moment: the database decides
// between them, never a lock inside a process.
//
// # Caveats
//
// Journal entries carry milliseconds since 1970; amounts are minor units. The
// tests pass their own times to every call that takes one. Leases go by the
// ledger's own clock, which a test cannot set: it waits for them by asking
// again. Where the contract leaves an error to the implementation, the tests
// ask only that there is one.
package ledgertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/ledger"
)

// Factory makes a new, empty ledger, ready for use, and returns a function that
// opens it. Each call of that function opens the same ledger once more, as
// another node would: with connections of its own and nothing shared in memory.
// Tests of races call from two or three of them at once. The suite closes what
// it opens.
type Factory func(t *testing.T) (open func() ledger.Ledger)

// contract lists the behaviours that every ledger has. Each runs on a ledger of
// its own, and none needs another one to have run.
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
	{"Sharing", testSharing},
	{"SharingRace", testSharingRace},
	{"SharingErasure", testSharingErasure},
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
	{"DropCommands", testDropCommands},
	{"Elsewhere", testElsewhere},
	{"TwoServers", testTwoServers},
	{"Deployments", testDeployments},
	{"Placements", testPlacements},
	{"AbandonShard", testAbandonShard},
	{"SkipTo", testSkipTo},
	{"Quarantine", testQuarantine},
	{"QuarantineFilters", testQuarantineFilters},
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
	{"Spread", testSpread},
	{"Transfer", testTransfer},
	{"TransferItems", testTransferItems},
	{"ImportSpread", testImportSpread},
	{"TransferLost", testTransferLost},
	{"TransferAhead", testTransferAhead},
	{"TransferRefused", testTransferRefused},
	{"TransferQuarantine", testTransferQuarantine},
	{"TransferRace", testTransferRace},
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
	{"PacketLuck", testPacketLuck},
	{"PacketShards", testPacketShards},
	{"PacketShardReadmit", testPacketShardReadmit},
	{"PacketShardRace", testPacketShardRace},
	{"MoreShards", testMoreShards},
	{"Money", testMoney},
	{"MoneyBounds", testMoneyBounds},
	{"Claims", testClaims},
	{"ClaimLists", testClaimLists},
	{"Orders", testOrders},
	{"Notes", testNotes},
	{"ReferenceAside", testReferenceAside},
	{"OffSale", testOffSale},
	{"OfProduct", testOfProduct},
	{"Regular", testRegular},
	{"RegularHeld", testRegularHeld},
	{"RegularRace", testRegularRace},
	{"Keys", testKeys},
	{"Requests", testRequests},
	{"Secrets", testSecrets},
	{"AdminLog", testAdminLog},
	{"AdminLogChain", testAdminLogChain},
	{"AdminLogAsked", testAdminLogAsked},
	{"AdminLogRace", testAdminLogRace},
	{"Revocations", testRevocations},
	{"Sessions", testSessions},
	{"SignIns", testSignIns},
	{"PendingSignIns", testPendingSignIns},
	{"Approvals", testApprovals},
	{"Audiences", testAudiences},
	{"Followers", testFollowers},
	{"FollowersRace", testFollowersRace},
	{"MerchantSizes", testMerchantSizes},
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

// Run checks the contract of ledger.Ledger on ledgers of the factory. It takes
// some seconds. A database fills every part of ledger.Ledger, so one run covers
// all services. Rows are written by the same calls that the services use: no
// test reads a table.
func Run(t *testing.T, factory Factory) {
	runThose(t, factory, func(string) bool { return true })
}

// runThose runs the behaviours that are wanted, and returns how many those were.
func runThose(t *testing.T, factory Factory, wanted func(name string) bool) (ran int) {
	for _, test := range contract {
		if !wanted(test.name) {
			continue
		}
		ran++
		t.Run(test.name, func(t *testing.T) {
			closes := func(l ledger.Ledger) error { return l.Database.Close() }
			test.run(t, &fixture{t: t, open: opener(t, "ledger", factory(t), closes)})
		})
	}
	return ran
}

// acrossCalls are behaviours in which something is kept from one call to the next, or is large.
var acrossCalls = []string{"LoadShard", "Epochs", "EpochFence", "SettleMany", "Deployments", "LivesLinear", "Feed", "ManyDeliveries", "Lifetime"}

// RunConnections checks the part of the contract that depends on how a ledger is connected: what several nodes do at the
// same moment, and what is kept from one call to the next. It is for a ledger that has passed Run, and is reached in
// another way here: with a pooler before its server, or without one.
func RunConnections(t *testing.T, factory Factory) {
	ran := runThose(t, factory, func(name string) bool { return strings.HasSuffix(name, "Race") || slices.Contains(acrossCalls, name) })
	if ran < 2*len(acrossCalls) {
		t.Errorf("only %d behaviours were checked", ran)
	}
}

// ofItems are the behaviours in which the values of items are stored, found or read.
var ofItems = []string{
	"Items", "LoadItems", "SettleItems", "SettleRefusesTakenItem", "QuarantineItems", "RestockItems", "Commands", "TransferItems",
	"Import", "ImportSpread", "ImportRefused", "ImportRace", "LivesItems", "LivesLoad", "ClaimLists", "Orders", "FeedItems", "EraseClaims", "Audit",
}

// RunItems checks the part of the contract in which values of items are stored, found or read, for a ledger that has
// another way to store them.
func RunItems(t *testing.T, factory Factory) {
	ran := runThose(t, factory, func(name string) bool { return slices.Contains(ofItems, name) })
	if ran != len(ofItems) {
		t.Errorf("the contract has %d of the %d behaviours of items", ran, len(ofItems))
	}
}
