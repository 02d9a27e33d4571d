package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

const (
	// settledClaims are settled into each ledger in each round: enough that indexes have several
	// levels, and that a checkpoint of the database falls into the round.
	settledClaims = 500_000
	// settledBatch is how many entries a transaction settles: the default of settle_batch. Smaller
	// batches cost more for each claim, since each transaction is synced.
	settledBatch = 16384
)

// settle measures how fast claims enter the ledgers of each kind, in turn in each round, each into
// an empty one, without an engine: the bound of what a node can sell hour after hour. SQLite works
// in this process, the servers in theirs, so "CPU of dibs" leaves their work out and compares
// only what stays on the node. The rates of all three depend on the disk.
func settle(ctx context.Context, o *options) (err error) {
	defer func() { err = errors.Join(err, servers.StopAll()) }()
	rates, costs := make([][]float64, len(ledgers)), make([][]float64, len(ledgers))
	for range o.rounds {
		for i, k := range ledgers {
			address, done, err := k.empty()
			if err != nil {
				return err
			}
			cpu := cpuTime()
			took, err := settleInto(ctx, address)
			costs[i] = append(costs[i], (cpuTime()-cpu).Seconds()/settledClaims*1e6)
			if err := errors.Join(err, done()); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			rates[i] = append(rates[i], settledClaims/took.Seconds())
		}
	}
	fmt.Printf("| ledger, %d claims in batches of %d | settled/s | CPU of dibs per claim, µs |\n|---|---|---|\n", settledClaims, settledBatch)
	for i, k := range ledgers {
		fmt.Printf("| %s | %.0f | %.1f |\n", k.name, median(rates[i]), median(costs[i]))
	}
	return nil
}

// emptyFile is a ledger in a file of a temporary folder; done removes it.
func emptyFile() (address string, done func() error, err error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return "", nil, err
	}
	return "sqlite:" + filepath.Join(dir, "ledger.db"), func() error { return os.RemoveAll(dir) }, nil
}

// ledgerKind is a kind of ledger, and how an empty one is made; done removes that.
type ledgerKind struct {
	name  string
	empty func() (address string, done func() error, err error)
}

// ledgers are those that parts compare, mariaDB the one of fleets.
var ledgers = []ledgerKind{
	{"SQLite", emptyFile}, {"MariaDB", emptyDatabase(servers.MariaDB)}, {"PostgreSQL", emptyDatabase(servers.Postgres)},
}

const mariaDB = 1

// place is where a node of a round keeps its data: a folder, and an empty ledger. drop removes both.
func (l *ledgerKind) place() (cfg node.Config, drop func() error, err error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return cfg, nil, err
	}
	address, done, err := l.empty()
	if err != nil {
		return cfg, nil, err
	}
	return node.Config{Dir: dir, Migrate: true, Ledger: address}, func() error { return errors.Join(done(), os.RemoveAll(dir)) }, nil
}

// emptyDatabase is a ledger in a new database of a server that get starts once and gives again
// later; done removes the database.
func emptyDatabase(get func() (*servers.Server, error)) func() (string, func() error, error) {
	return func() (string, func() error, error) {
		s, err := get()
		if err != nil {
			return "", nil, err
		}
		address, _, done, err := s.Database()
		return address, done, err
	}
}

// settleInto settles grants of one unit to users in random order, and returns how long the settling
// took, without the making of the entries. The order is what matters: users who come in order would
// all be added at one end of the index by user. Users may repeat, as the ledger checks no limit.
func settleInto(ctx context.Context, address string) (took time.Duration, err error) {
	l, err := sqlledger.Open(ctx, address, sqlledger.Options{Migrate: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c := &dibs.Campaign{
		ID: "bench", Kind: dibs.Sale, Title: "bench", State: dibs.Published, LimitPerUser: 1, Shards: 1, Version: 1,
		LatePayment: dibs.Reclaim, Stock: dibs.Stock{Kind: dibs.Units, Total: dibs.MaxStock},
	}
	if err := l.InsertCampaign(ctx, c, nil); err != nil {
		return 0, err
	}
	shard := dibs.ShardID{Campaign: c.Number}
	load, err := l.LoadShard(ctx, c, shard, live.Opener{})
	if err != nil {
		return 0, err
	}
	batch := live.Batch{Campaign: c, Shard: shard, Fence: load.Epoch, To: dibs.Cursor{Epoch: load.Epoch, Seq: 1}}
	// An epoch begins with an entry that opens it; the first transaction settles that one alone.
	batch.Entries = []dibs.Entry{{Cursor: batch.To, Kind: dibs.EntryOpen}}
	for left := settledClaims; ; {
		began := time.Now()
		if err := l.Settle(ctx, []live.Batch{batch}); err != nil {
			return 0, err
		}
		// Only the call: making the entries below is no part of settling.
		took += time.Since(began)
		if left == 0 {
			return took, nil
		}
		n := min(left, settledBatch)
		left -= n
		// A batch begins where the last one ended: the ledger refuses a gap.
		batch.From, batch.Entries = batch.To, batch.Entries[:0]
		for range n {
			batch.To.Seq++
			batch.Entries = append(batch.Entries, dibs.Entry{
				Cursor: batch.To, Kind: dibs.EntryGrant, At: began.UnixMilli(), Quantity: 1, Key: rand.Uint64(),
				UserID: "u" + strconv.Itoa(1_000_000+rand.IntN(9_000_000)),
			})
		}
	}
}
