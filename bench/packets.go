package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/funds"
)

// packetShares is how many shares a round's red packet has, of which a tenth is left over, so that
// there is something to return at the end. packetCallers is how many users grab at a time.
const (
	packetShares  = 100_000
	packetCallers = 64
)

// packets measures a red packet from its draft to its remainder: how fast shares are grabbed while
// others are credited, how long it takes until the last one is credited, and until the rest is back
// on the sender's account. Crediting follows settling and shares the CPUs and the disk with the
// grabs: a fast rate of grabs with few credits meanwhile only moves the work to later, so "whole",
// from the first grab to the last credit, decides which round is the best. All combinations sync.
func packets(ctx context.Context, o *options) error {
	fmt.Printf("%d shares, of which %d are grabbed by %d callers; the best of %d rounds\n\n", packetShares, packetShares*9/10, packetCallers, o.rounds)
	fmt.Println("| engine | ledger | divided and drafted in | grabs/s | credited while grabbing | all credited, after the last grab | credits/s, from the first grab on | the rest is back, after the end |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for i, l := range append(slices.Clone(ledgers), ledgers[mariaDB]) {
		engine := "memory"
		if i == len(ledgers) {
			engine = "Redis"
		}
		var best packetFigures
		for range o.rounds {
			f, err := packetRound(ctx, engine == "Redis", &l)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", l.name, err), servers.StopAll())
			}
			if best.whole == 0 || f.whole < best.whole {
				best = f
			}
		}
		const ms = time.Millisecond
		fmt.Printf("| %s | %s | %s | %.0f | %d | %s | %.0f | %s |\n", engine, l.name, best.drafted.Round(10*ms), best.rate, best.during,
			best.credited.Round(10*ms), packetShares*9/10/best.whole.Seconds(), best.back.Round(10*ms))
	}
	return servers.StopAll()
}

// packetFigures is one round: drafted includes dividing and publishing; credited is from the last
// grab and whole from the first grab to the last credit; back is from the end to the returned rest.
// rate is grabs a second.
type packetFigures struct {
	drafted, credited, whole, back time.Duration
	rate                           float64
	// during is how many fen, of nine million, were credited while grabbing went on.
	during int64
}

// packetRound gives one red packet away on a new node and verifies. Redis, when asked for, syncs
// every write, as the level durable requires.
func packetRound(ctx context.Context, onRedis bool, l *ledgerKind) (f packetFigures, err error) {
	cfg, drop, err := l.place()
	if err != nil {
		return f, err
	}
	if onRedis {
		r, stop, err := startRedis(servers.RedisAlways...)
		if err != nil {
			return f, err
		}
		// After the node is closed: deferred calls run last.
		defer stop()
		cfg.Engine = r.URL()
	}
	nd, err := node.Open(ctx, cfg)
	if err != nil {
		return f, err
	}
	f, err = packetFigured(ctx, nd)
	return f, errors.Join(err, nd.Close(ctx), drop())
}

// packetFigured measures one red packet: 1.00 CNY a share in the mean, from a sender whose deposit
// pays for all of it.
func packetFigured(ctx context.Context, nd *node.Node) (f packetFigures, err error) {
	total := dibs.Money{Amount: packetShares * 100, Currency: "CNY"}
	if _, _, err := nd.Service.Funds.Deposit(ctx, "host", funds.DepositSpec{Amount: total, Ref: "d"}); err != nil {
		return f, err
	}
	began := time.Now()
	if _, err := published(ctx, nd.Service, dibs.CampaignSpec{
		ID: "rain", Kind: dibs.RedPacket, SenderID: "host",
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: total, Count: packetShares}},
	}); err != nil {
		return f, err
	}
	// The grabs begin at once after publishing: users wait for the moment too.
	f.drafted = time.Since(began)
	began = time.Now()
	if err := inParallel(ctx, packetCallers, packetShares*9/10, func(ctx context.Context, i int) error {
		return claim(ctx, nd.Service, "rain", "u"+strconv.Itoa(i), "k", dibs.Granted)
	}); err != nil {
		return f, err
	}
	f.rate = packetShares * 9 / 10 / time.Since(began).Seconds()
	grabbed := time.Now()
	st, err := nd.Service.Stats(ctx, "rain")
	if err != nil {
		return f, err
	}
	// The shares that are credited by now were credited beside the grabs.
	f.during = st.Funds.Credited.Amount
	if err := packetUntil(ctx, nd, false); err != nil {
		return f, err
	}
	f.credited, f.whole = time.Since(grabbed), time.Since(began)
	ended := time.Now()
	if _, err := nd.Service.Campaigns.End(ctx, "rain"); err != nil {
		return f, err
	}
	if err := packetUntil(ctx, nd, true); err != nil {
		return f, err
	}
	f.back = time.Since(ended)
	// Shares, credits and the remainder must add up to the total, or the figures mean nothing.
	return f, verified(ctx, nd.Service)
}

// packetUntil waits until all that was grabbed is settled and credited, or, when home, until the
// rest is back and the packet is no longer open. It asks the ledger every 10 ms, which is how exact
// the figures are, and gives up after five minutes.
func packetUntil(ctx context.Context, nd *node.Node, home bool) error {
	c, err := nd.Ledger.Campaign(ctx, "rain")
	if err != nil {
		return err
	}
	began := time.Now()
	return until(ctx, 10*time.Millisecond, func() (bool, error) {
		settled, err := nd.Ledger.Totals(ctx, dibs.ShardID{Campaign: c.Number})
		if err != nil {
			return false, err
		}
		open, err := nd.Ledger.OpenPackets(ctx)
		if err == nil && time.Since(began) > 5*time.Minute {
			err = errors.New("the red packet does not get on")
		}
		return len(open) == 0 || !home && settled.Confirmed == packetShares*9/10 && !open[0].Behind, err
	})
}
