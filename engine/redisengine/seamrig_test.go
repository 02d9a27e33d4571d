package redisengine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/redpacket"

	"github.com/dibs-dev/dibs/node"
)

const (
	// crossStock is what the campaign of a cell sells, crossMore what a restock adds.
	crossStock, crossMore = 12, 2
	// packetTotal is what a red packet has, in fen.
	packetTotal = 10_000
	// crossPatience bounds each wait of a cell. It is long since many cells share few
	// processors.
	crossPatience = 2 * time.Minute
	// crossWithin is how soon after what was in flight goes on every node grants: many cells share few processors.
	crossWithin = 2 * time.Minute
	theCampaign = "phone"
)

var theShard = dibs.ShardID{Campaign: 1}

// crossing is one cell: a node that is held while it does something, and what loses
// history meanwhile.
type crossing struct {
	*fleet
	h    *holder
	wire *wire
	// first is the node that is held, second a node that joins after the loss; nil
	// where the first one has to cope alone.
	first, second *member
	// late is the holder of the second node.
	late *holder
	// replica is a server that has followed until the mark, and dump the ledger as it
	// was then; tail is the length that the append-only file had.
	replica *servers.Redis
	dump    string
	tail    int64

	// freed is when the held call went on.
	freed time.Time

	presses sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context
	mu      sync.Mutex
	yeses   []yes
	// kept is what of the grants has survived the loss, by place: what the ledger had,
	// and by server, what the journal had.
	inLedger  map[dibs.Cursor]string
	inJournal map[*servers.Redis]map[dibs.Cursor]string
	// again repeats the command that was in flight, as its caller does; nil for none.
	again func(n *member) error
	// older says that claims that the ledger had are lost by decision.
	older bool
	// restocked says that the command was a restock.
	restocked bool
	// ends is what the first claim is in the end, where that was in flight; else Pending.
	ends dibs.Status
}

// yes is a grant that a user was told of.
type yes struct {
	claim *dibs.Claim
	by    *member
	// late says that it was asked for after the loss.
	late bool
}

func newCrossing(t *testing.T, ledgered bool) *crossing {
	t.Helper()
	f := newFleet(t, 0)
	f.tune = node.ServiceConfig{
		Ledgered: ledgered, CreditEvery: 100 * time.Millisecond, SettleEvery: 25 * time.Millisecond,
		Split: func(p dibs.RedPacketSpec) ([]int64, error) { return redpacket.Split(p, nil) },
	}
	x := &crossing{fleet: f, h: newHolder(), late: newHolder(), inJournal: map[*servers.Redis]map[dibs.Cursor]string{}}
	x.ctx, x.stop = context.WithCancel(t.Context())
	x.wire = &wire{h: x.h, to: f.redis.Addr()}
	f.engine.Dial = x.wire.dial
	x.first = x.joinBehind(x.h)
	f.engine.Dial = nil
	return x
}

// joinBehind adds a node behind a holder.
func (x *crossing) joinBehind(h *holder) *member {
	x.Helper()
	x.wrap = func(cfg *node.ServiceConfig) {
		cfg.Engine = &heldEngine{cfg.Engine.(*redisengine.Engine), h}
		l := &heldLedger{cfg.Ledger.Live.(*sqlledger.Ledger), h}
		cfg.Ledger.Live, cfg.Ledger.Funds, cfg.Ledger.Orders = l, l, l
	}
	defer func() { x.wrap = nil }()
	return x.join()
}

// closeAll ends the nodes while all servers run.
func (x *crossing) closeAll() {
	x.h.free(false)
	x.late.free(false)
	x.stop()
	x.presses.Wait()
	for _, n := range x.nodes {
		n.close(x.T)
	}
}

// publishOne publishes the cell's campaign: a sale whose claims wait for their payment,
// or a red packet.
func (x *crossing) publishOne(packet bool) {
	x.Helper()
	now, payWithin := time.Now(), dibs.Duration(3*time.Hour)
	spec := dibs.CampaignSpec{
		ID: theCampaign, Kind: dibs.Sale, Title: theCampaign, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Units: new(int64(crossStock))}, Price: &dibs.Money{Amount: 100, Currency: "CNY"}, PayWithin: &payWithin,
	}
	if packet {
		spec.Kind, spec.Price, spec.PayWithin = dibs.RedPacket, nil, nil
		spec.Stock = dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: packetTotal, Currency: "CNY"}, Count: crossStock}}
	}
	_, err := x.first.Campaigns.Create(x.ctx, spec)
	must(x.T, err)
	_, err = x.first.Campaigns.Publish(x.ctx, theCampaign)
	must(x.T, err)
}

// await is until with the patience of cells. It asks rarely, since many cells do.
func (x *crossing) await(what string, holds func() bool) {
	x.Helper()
	deadline := time.Now().Add(crossPatience)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			x.Fatalf("%s have passed without %s", crossPatience, what)
		}
		<-tick.C
	}
}

// ask makes a claim and notes a yes.
func (x *crossing) ask(n *member, user string, late bool) (dibs.Result, error) {
	res, err := n.Claims.Claim(x.ctx, dibs.ClaimRequest{CampaignID: theCampaign, UserID: user, Key: "k"})
	if err == nil && res.Outcome == dibs.Granted {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.yeses = append(x.yeses, yes{res.Claim, n, late})
	}
	return res, err
}

// granted asks for a user until the answer is yes.
func (x *crossing) granted(n *member, user string, late bool) *dibs.Claim {
	x.Helper()
	var res dibs.Result
	x.await("a yes to "+user, func() bool {
		var err error
		res, err = x.ask(n, user, late)
		return err == nil && res.Outcome == dibs.Granted
	})
	return res.Claim
}

// press has users ask the first node, and returns when the engine has granted what
// they asked for; where an answer does not wait for the ledger, when they have it.
func (x *crossing) press(users ...string) {
	x.Helper()
	st := x.stats(x.first, theShard)
	for _, user := range users {
		x.presses.Go(func() {
			// It may be lost, or come late.
			_, _ = x.ask(x.first, user, false)
		})
	}
	want := st.Granted + int64(len(users))
	x.await("the grants", func() bool {
		st, err := x.first.engine.Stats(x.ctx, theShard)
		return err == nil && st.Granted == want
	})
	if !x.tune.Ledgered {
		x.presses.Wait()
	}
}

// stats waits until the shard is open: one that was lost may be loaded just now.
func (x *crossing) stats(n *member, shard dibs.ShardID) (st dibs.ShardStats) {
	x.Helper()
	x.await("shard "+shard.String()+" to be open", func() (open bool) {
		var err error
		if st, err = n.engine.Stats(x.ctx, shard); !errors.Is(err, dibs.ErrNotOpen) {
			must(x.T, err)
		}
		return err == nil
	})
	return st
}

func (x *crossing) firstYes() yes {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.yeses[0]
}

// settledAll waits until the ledger has all that the engine has granted.
func (x *crossing) settledAll(n *member) {
	x.Helper()
	x.await("engine and ledger to have the same", func() bool {
		st, err := n.engine.Stats(x.ctx, theShard)
		if err != nil {
			return false
		}
		totals, err := n.ledger.Totals(x.ctx, theShard)
		must(x.T, err)
		waiting, err := n.ledger.Commands(x.ctx, 0, 1)
		must(x.T, err)
		return totals.Position == st.Head && st.Settled == st.Head && len(waiting) == 0
	})
}

// inFlight waits until the first node is held.
func (x *crossing) inFlight() {
	x.Helper()
	select {
	case <-x.h.held:
	case <-time.After(crossPatience):
		x.Fatal("the node has not come to the step at which it was to be held")
	}
}

// restore puts the dump back. The node dies where it is held.
func (x *crossing) restore() {
	x.Helper()
	x.dies()
	x.putBack(x.dump)
}

// dies ends the first node without a word to anybody.
func (x *crossing) dies() {
	x.h.free(true)
	x.wire.sever()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	n := x.first
	x.Logf("the first node dies: %v", errors.Join(n.Close(gone), n.engine.Close(gone)))
	x.stop()
	x.presses.Wait()
	x.ctx, x.stop = context.WithCancel(x.Context())
	must(x.T, n.ledger.Close())
	n.Service = nil
}

// alive are the nodes that have not died.
func (x *crossing) alive() (nodes []*member) {
	for _, n := range x.nodes {
		if n.Service != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// claimsNow is what the ledger has, by place.
func (x *crossing) claimsNow() map[dibs.Cursor]string {
	x.Helper()
	l, err := sqlledger.Open(x.ctx, x.ledger, sqlledger.Options{Timeout: ledgerTime})
	must(x.T, err)
	list, err := l.ClaimList(x.ctx, dibs.ClaimFilter{Campaign: 1}, dibs.Page{Limit: dibs.MaxPage})
	must(x.T, errors.Join(err, l.Close()))
	if list.NextCursor != "" {
		x.Fatal("there are more claims than a page has")
	}
	found := map[dibs.Cursor]string{}
	for i := range list.Items {
		found[list.Items[i].Position.Cursor] = list.Items[i].UserID
	}
	return found
}

// noteJournal notes what a server's journal has.
func (x *crossing) noteJournal(r *servers.Redis) {
	x.Helper()
	e, err := redisengine.Open(x.ctx, redisengine.Config{URL: r.URL()})
	must(x.T, err)
	entries, err := e.ReadJournal(x.ctx, theShard, dibs.Cursor{}, 1000)
	must(x.T, errors.Join(err, e.Close(x.ctx)))
	found := x.inJournal[r]
	if found == nil {
		found = map[dibs.Cursor]string{}
		x.inJournal[r] = found
	}
	for i := range entries {
		if entries[i].Kind == dibs.EntryGrant {
			found[entries[i].Cursor] = entries[i].UserID
		}
	}
}

// isElsewhere reports whether a node says that another server has the campaign.
func (x *crossing) isElsewhere(n *member) bool {
	return strings.Contains(n.Health(x.ctx).Dependencies["campaigns"].Error, "another server")
}

// keptYeses compares what users were told with what the ledger has in the end: what
// the survivor's server and the ledger had after the loss is there, and whatever the
// survivor has granted since; at `ledgered`, every yes.
func (x *crossing) keptYeses(survivor *member, server *servers.Redis) {
	x.Helper()
	has, journal := x.claimsNow(), maps.Clone(x.inJournal[server])
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, y := range x.yeses {
		at := y.claim.Position.Cursor
		user, found := has[at]
		switch {
		case found && user != y.claim.UserID:
			x.Errorf("claim %s was answered with yes to %s, and is %s's in the ledger", at, y.claim.UserID, user)
		case found:
		case x.tune.Ledgered && !x.older:
			x.Errorf("%s was told yes at %s, and the ledger does not have it", y.claim.UserID, at)
		case y.late && y.by == survivor:
			x.Errorf("%s was told yes at %s after the loss, and the ledger does not have it", y.claim.UserID, at)
		case x.inLedger[at] == y.claim.UserID || journal[at] == y.claim.UserID:
			x.Errorf("%s was told yes at %s, which survived the loss, and the ledger does not have it", y.claim.UserID, at)
		}
	}
	for at, user := range x.inLedger {
		if has[at] != user {
			x.Errorf("the ledger had %s of %s after the loss, and has it of %q", at, user, has[at])
		}
	}
}

// sellsOut sells what is left through a node, and expects that engine and ledger agree
// that nothing is.
func (x *crossing) sellsOut(n *member) {
	x.Helper()
	over := false
	for i := 0; !over; i++ {
		if i > crossStock+2*crossMore {
			x.Fatal("more is granted than there is")
		}
		x.await("an answer", func() bool {
			res, err := x.ask(n, fmt.Sprint("rest-", i), true)
			over = err == nil && res.Outcome == dibs.SoldOut
			return over || err == nil && res.Outcome == dibs.Granted
		})
	}
	x.settledAll(n)
}
