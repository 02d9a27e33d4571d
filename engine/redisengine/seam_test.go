package redisengine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/audit"
)

// crossingsAtOnce is how many cells run at the same time: they wait most of their
// time, for leases to end and for servers to count as gone.
const crossingsAtOnce = 16

// loss is something that loses history.
type loss struct {
	name string
	// mark notes the state that is gone back to, and happen goes back to it.
	mark, happen func(x *crossing)
	// alone says that the held node may cope without another one.
	alone bool
	// fork says that the server of the held node lives on; older that the ledger went
	// back beyond what the journal has.
	fork, older bool
}

func nothing(*crossing) {}

var losses = []loss{
	{name: "restarted empty", mark: nothing, happen: restartEmpty, alone: true},
	{name: "failover", mark: promoteReplica, happen: failOver, alone: true},
	{name: "fork", mark: promoteReplica, happen: func(x *crossing) { x.redis = x.replica }, fork: true},
	{name: "flushall", mark: nothing, happen: func(x *crossing) { redisDo(x.T, x.fleet, "FLUSHALL") }, alone: true},
	{name: "torn tail", mark: func(x *crossing) { _, x.tail = x.appendOnly() }, happen: tearTail, alone: true},
	{name: "older dump", mark: dumpOlder, happen: (*crossing).restore},
	{name: "older dump, trimmed journal", mark: dumpOlder, happen: restoreTrimmed, older: true},
}

// column is what is in flight: begin returns when the first node is held.
type column struct {
	name  string
	begin func(x *crossing)
	// packet says that the campaign is a red packet, and raised that the epoch was
	// raised by the held node.
	packet, raised bool
	// answers says that answers wait for what is in flight, when they wait for the
	// ledger: such a column is crossed at that level too.
	answers bool
	// over says that the campaign ends meanwhile, so that nobody is granted anything
	// after the loss.
	over bool
}

var columns = []column{
	{name: "a batch read", begin: func(x *crossing) { heldBatch(x, settle) }, answers: true},
	{name: "a batch settled, its answer lost", begin: func(x *crossing) { heldBatch(x, settled) }, answers: true},
	{name: "a restock before it is sent", begin: func(x *crossing) { heldRestock(x, adjust) }},
	{name: "a restock carried out", begin: func(x *crossing) { heldRestock(x, dropCommand) }},
	{name: "a release before it is sent", begin: func(x *crossing) { heldCancel(x, release) }},
	{name: "a release carried out", begin: func(x *crossing) { heldCancel(x, dropCommand) }},
	{name: "a load before the ledger", begin: func(x *crossing) { heldLoad(x, loadShard) }},
	{name: "a load before it opens", begin: func(x *crossing) { heldLoad(x, loadedShard) }, raised: true, answers: true},
	{name: "a load after it shut", begin: func(x *crossing) { heldLoad(x, fillShard) }, raised: true},
	{name: "a load before its last step", begin: func(x *crossing) { heldLoad(x, openShard) }, raised: true},
	{name: "a load, while a node drops a release", begin: heldDrop, raised: true},
	{name: "a credit", begin: func(x *crossing) { heldCredit(x, credit) }, packet: true},
	{name: "a credit made, its answer lost", begin: func(x *crossing) { heldCredit(x, credited) }, packet: true},
	{name: "a payment made, its answer lost", begin: heldPayment},
	{name: "a refund made, its answer lost", begin: func(x *crossing) { heldRefund(x, moved) }},
	{name: "a refund before its stock is sent", begin: func(x *crossing) { heldRefund(x, release) }},
	{name: "a rest before it leaves the engine", begin: func(x *crossing) { heldRest(x, adjust) }, packet: true, over: true},
	{name: "a rest gone home, its answer lost", begin: func(x *crossing) { heldRest(x, returned) }, packet: true, over: true},
}

// cell is one crossing.
type cell struct {
	loss     *loss
	column   *column
	ledgered bool
	// alone says that the held node copes without another one.
	alone bool
}

func (c *cell) name() string {
	level, nodes := dibs.LevelDurable, "another node"
	if c.ledgered {
		level = dibs.LevelLedgered
	}
	if c.alone {
		nodes = "alone"
	}
	return fmt.Sprintf("%s/%s/%s/%s", level, c.loss.name, c.column.name, nodes)
}

// cells crosses all losses with all columns: each with each in one of the ways that they
// can meet, in turn, or with SOAK in all of them.
func cells() (all []cell) {
	for l := range losses {
		for c := range columns {
			ways := waysToMeet(&losses[l], &columns[c])
			if os.Getenv("SOAK") == "" {
				ways = ways[(l+c)%len(ways):][:1]
			}
			all = append(all, ways...)
		}
	}
	return all
}

// waysToMeet crosses a loss with a column at both levels, alone and with another node. A
// node copes alone with what neither kills it nor gives its campaign to another one; and
// where no answer waits for what is in flight, the level makes no difference.
func waysToMeet(l *loss, c *column) (ways []cell) {
	for _, ledgered := range []bool{false, true} {
		if ledgered && !c.answers {
			continue
		}
		ways = append(ways, cell{loss: l, column: c, ledgered: ledgered})
		if l.alone {
			ways = append(ways, cell{loss: l, column: c, ledgered: ledgered, alone: true})
		}
	}
	return ways
}

// TestCrossings crosses what loses history with what is in flight, one by one. After
// each the campaign grants again, or is halted and says so where the ledger went back
// in time beyond the journal; every promise holds; and no yes is lost but those that
// the loss may take.
func TestCrossings(t *testing.T) {
	var all sync.WaitGroup
	free := make(chan struct{}, crossingsAtOnce)
	for _, c := range cells() {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			t.Run(c.name(), func(t *testing.T) { cross(t, c.loss, c.column, c.ledgered, c.alone) })
		})
	}
	all.Wait()
}

func cross(t *testing.T, l *loss, c *column, ledgered, alone bool) {
	x := newCrossing(t, ledgered)
	x.older = l.older
	defer x.closeAll()
	x.publishOne(c.packet)
	for i := range 3 {
		x.granted(x.first, fmt.Sprint("early-", i), false)
	}
	x.settledAll(x.first)
	l.mark(x)
	old := x.redis
	c.begin(x)

	l.happen(x)
	x.inLedger = x.claimsNow()
	for _, r := range []*servers.Redis{x.redis, old} {
		if r == x.redis || l.fork {
			x.noteJournal(r)
		}
	}
	survivor, server := x.first, x.redis
	if !alone {
		if !ledgered && x.first.Service != nil && !(l.fork && c.raised) {
			// It settles nothing before the held call has reached the ledger: else the
			// position alone would refuse that.
			x.late.failAt(settle)
		}
		x.second = x.joinBehind(x.late)
		survivor = x.second
	}
	switch {
	case l.older:
		x.saysOlder(x.second)
	case c.over:
		// Nobody is granted anything any more.
	case l.fork && c.raised:
		// The old server has an epoch that the promoted one knows nothing of, and goes
		// on, unless its node is held for so long that it counts as gone.
		x.await("the second node to give way", func() bool {
			res, err := x.ask(x.second, "meanwhile", true)
			return x.isElsewhere(x.second) || err == nil && res.Outcome == dibs.Granted
		})
	case !alone:
		x.granted(x.second, "meanwhile", true)
	}
	x.freed = time.Now()
	x.h.free(false)
	<-x.h.over
	x.late.free(false)
	if c.over {
		x.goesHome(survivor, server)
		return
	}
	if l.fork {
		if survivor = x.oneGivesWay(); survivor == x.first {
			server = old
		}
		if survivor == x.first && !c.raised {
			t.Error("the node of the promoted server gives way, which had the campaign first")
		}
	}
	x.endsWell(l, c, survivor, server)
}

// endsWell expects that all is whole in the end.
func (x *crossing) endsWell(l *loss, c *column, survivor *member, server *servers.Redis) {
	x.Helper()
	sellers := []*member{survivor}
	if !l.fork {
		sellers = x.alive()
	}
	for i, n := range sellers {
		x.granted(n, fmt.Sprint("after-", i), true)
		took := time.Since(x.freed).Round(time.Millisecond)
		x.Logf("seller %d of %d grants %s after what was in flight went on", i+1, len(sellers), took)
		if took > crossWithin {
			x.Errorf("seller %d grants after %s, not within %s", i+1, took, crossWithin)
		}
	}
	x.agree(survivor)
	if x.again != nil {
		// The caller had no answer, and asks again.
		x.await("the repeated command", func() bool { return x.again(survivor) == nil })
		x.agree(survivor)
	}
	if x.ends != dibs.Pending {
		x.isInTheEnd(survivor)
	}
	x.sellsOut(survivor)
	x.presses.Wait()
	stock := int64(crossStock)
	if x.restocked {
		stock += crossMore
	}
	totals, err := survivor.ledger.Totals(x.ctx, theShard)
	must(x.T, err)
	if totals.Stock != stock || totals.StockLeft != 0 || totals.Pending+totals.Confirmed != stock {
		x.Errorf("of %d units the ledger says %+v", stock, totals)
	}
	x.agree(survivor)
	for _, n := range sellers {
		report, err := n.Audit.Verify(x.ctx)
		must(x.T, err)
		if !report.OK {
			x.Errorf("a promise is broken: %+v", report)
		}
	}
	if c.packet {
		x.allCredited(survivor)
	}
	x.noteJournal(server)
	x.keptYeses(survivor, server)
}

// agree waits until nothing is in flight any more, and expects engine and ledger to
// have the same left.
func (x *crossing) agree(n *member) {
	x.Helper()
	x.settledAll(n)
	st := x.stats(n, theShard)
	totals, err := n.ledger.Totals(x.ctx, theShard)
	must(x.T, err)
	if st.Remaining != totals.StockLeft {
		x.Errorf("the engine has %d left, the ledger %d", st.Remaining, totals.StockLeft)
	}
}

// oneGivesWay waits until one of the two nodes says that it sells nothing, since the
// other's server has the campaign, and returns the other.
func (x *crossing) oneGivesWay() (survivor *member) {
	x.Helper()
	nodes := []*member{x.first, x.second}
	x.await("one node to give way", func() bool {
		var gone [2]bool
		for i, n := range nodes {
			// It notices when it settles.
			_, err := x.ask(n, fmt.Sprint("contested-", i), true)
			gone[i] = errors.Is(err, dibs.ErrUnavailable) && x.isElsewhere(n)
		}
		if survivor = x.first; gone[0] {
			survivor = x.second
		}
		// Of a campaign of several shards each may have some for a while.
		return gone[0] != gone[1] && !x.isElsewhere(survivor)
	})
	return survivor
}

// saysOlder expects a node to sell nothing and to say why, and to go on when it is
// told to.
func (x *crossing) saysOlder(n *member) {
	x.Helper()
	res, err := n.Claims.Claim(x.ctx, dibs.ClaimRequest{CampaignID: theCampaign, UserID: "too-early", Key: "k"})
	if !errors.Is(err, dibs.ErrUnavailable) {
		x.Fatalf("from a ledger that is older than its journal is answered %s, %v", res.Outcome, err)
	}
	// It may have to wait for the lease of the node that died.
	x.await("the node to say why", func() bool {
		h := n.Health(x.ctx)
		return !h.Ready && strings.Contains(h.Dependencies["campaigns"].Error, "older than its journal")
	})
	report, err := n.Audit.Verify(x.ctx)
	must(x.T, err)
	if said := fmt.Sprint(report.Campaigns); report.OK || !strings.Contains(said, "older backup") {
		x.Errorf("verify says %s", said)
	}
	x.await("the repair", func() bool {
		// The lease of the node that died may stand in its way.
		repaired, err := n.Audit.Repair(x.ctx, audit.RepairRequest{OlderLedger: audit.OlderLedgerContinue})
		return err == nil && repaired.OK
	})
}

// allCredited waits until every share is credited.
func (x *crossing) allCredited(n *member) {
	x.Helper()
	x.await("every share to be credited", func() bool {
		funds, err := n.ledger.PacketFunds(x.ctx, 1)
		must(x.T, err)
		return funds.Credited == funds.Funded
	})
	bad, err := n.ledger.AuditAccounts(x.ctx, "CNY")
	must(x.T, err)
	if len(bad) > 0 {
		x.Errorf("the accounts do not balance: %v", bad)
	}
}

// heldBatch holds the settling of two grants.
func heldBatch(x *crossing, at step) {
	x.h.holdAt(at)
	x.press("mid-0", "mid-1")
	x.inFlight()
}

// unsettled makes two grants that the ledger does not have before the loss.
func unsettled(x *crossing) {
	x.h.failAt(settle)
	x.press("mid-0", "mid-1")
}

func heldRestock(x *crossing, at step) {
	unsettled(x)
	x.h.holdAt(at)
	x.restocked = true
	x.again = func(n *member) error {
		_, err := n.Campaigns.ChangeStock(x.ctx, theCampaign, dibs.StockChange{Delta: crossMore}, "more")
		return err
	}
	first := x.first
	x.presses.Go(func() {
		// The node may die before it answers.
		_ = x.again(first)
	})
	x.inFlight()
}

func heldCancel(x *crossing, at step) {
	unsettled(x)
	x.h.holdAt(at)
	id := x.firstYes().claim.ID
	x.again = func(n *member) error {
		_, _, err := n.Orders.Cancel(x.ctx, id, "", "changed my mind")
		return err
	}
	first := x.first
	x.presses.Go(func() {
		// The node may die before it answers.
		_ = x.again(first)
	})
	x.inFlight()
}

// heldLoad holds a load of a shard that was taken out while it had a tail.
func heldLoad(x *crossing, at step) {
	unsettled(x)
	x.h.holdAt(at)
	must(x.T, x.first.engine.Halt(x.ctx, theShard))
	x.inFlight()
}

// heldDrop holds a load that has read the ledger, while a node whose clock is ahead
// cancels a claim: for it the campaign is over, so that it drops the release.
func heldDrop(x *crossing) {
	tune := x.tune
	x.tune.Now = func() time.Time { return time.Now().Add(65 * time.Minute) }
	ahead := x.join()
	x.tune = tune
	heldLoad(x, loadedShard)
	id := x.firstYes().claim.ID
	x.again = func(n *member) error {
		_, _, err := n.Orders.Cancel(x.ctx, id, "", "changed my mind")
		return err
	}
	must(x.T, x.again(ahead))
	x.await("the release to be dropped", func() bool {
		waiting, err := ahead.ledger.Commands(x.ctx, 0, 1)
		must(x.T, err)
		return len(waiting) == 0
	})
	ahead.close(x.T)
}

// heldCredit holds the credit of a share.
func heldCredit(x *crossing, at step) {
	x.h.holdAt(at)
	x.press("credited")
	x.inFlight()
	unsettled(x)
}

// promoteReplica starts a server that has what there is now, and nothing later.
func promoteReplica(x *crossing) {
	x.replica = replicaOf(x.T, x.redis)
	level(x.T, connect(x.T, x.replica), connect(x.T, x.redis))
	leads(x.T, x.replica)
}

// failOver has the replica answer at the master's address.
func failOver(x *crossing) {
	x.wire.moveTo(x.replica.Addr())
	x.redis.Kill()
	x.redis = x.replica
}

func restartEmpty(x *crossing) {
	x.redis.Kill()
	must(x.T, os.RemoveAll(filepath.Join(x.redis.Dir(), "appendonlydir")))
	must(x.T, x.redis.Start())
}

// appendOnly is the append-only file and its length. Redis answers before it writes while
// an fsync is under way, so that this waits for what it keeps back.
func (x *crossing) appendOnly() (file string, length int64) {
	x.Helper()
	r := connect(x.T, x.redis)
	x.await("Redis to write its file", func() bool {
		info, err := r.Do(x.ctx, r.B().Info().Section("persistence").Build()).ToString()
		return err == nil && strings.Contains(info, "aof_buffer_length:0\r")
	})
	files, err := filepath.Glob(filepath.Join(x.redis.Dir(), "appendonlydir", "*.incr.aof"))
	must(x.T, err)
	if len(files) != 1 {
		x.Fatalf("the append-only files are %v", files)
	}
	info, err := os.Stat(files[0])
	must(x.T, err)
	return files[0], info.Size()
}

// tearTail cuts the append-only file back, a few bytes into a command.
func tearTail(x *crossing) {
	file, length := x.appendOnly()
	const torn = 7
	if length < x.tail+torn {
		x.Fatalf("nothing was written since: %d of %d bytes", length, x.tail)
	}
	x.redis.Kill()
	must(x.T, os.Truncate(file, x.tail+torn))
	must(x.T, x.redis.Start())
}

// dumpOlder copies the ledger before its last batch.
func dumpOlder(x *crossing) {
	x.dump = x.dumpLedger()
	x.granted(x.first, "since-the-dump", false)
	x.settledAll(x.first)
}

func restoreTrimmed(x *crossing) {
	x.restore()
	redisDo(x.T, x.fleet, "XTRIM", "dibs:{1:0}:journal", "MAXLEN", "0")
}
