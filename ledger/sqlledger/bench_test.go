package sqlledger_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// benchCampaign stores a campaign with a large stock of units.
func benchCampaign(b *testing.B, l *sqlledger.Ledger) *dibs.Campaign {
	c := &dibs.Campaign{
		ID: "bench", Kind: dibs.Sale, Title: "bench", State: dibs.Published, LimitPerUser: 1, Shards: 1, Version: 1,
		LatePayment: dibs.Reclaim, Stock: dibs.Stock{Kind: dibs.Units, Total: dibs.MaxStock},
	}
	if err := l.InsertCampaign(b.Context(), c, nil); err != nil {
		b.Fatal(err)
	}
	return c
}

// grants writes n grants after a place, to users in random order.
func grants(random *rand.Rand, last dibs.Cursor, n int) []dibs.Entry {
	entries := make([]dibs.Entry, n)
	for i := range entries {
		last.Seq++
		entries[i] = dibs.Entry{
			Cursor: last, Kind: dibs.EntryGrant, At: 1_796_097_600_000 + int64(last.Seq), Quantity: 1,
			UserID: "u" + strconv.Itoa(1_000_000+random.IntN(9_000_000)), Key: random.Uint64(),
		}
	}
	return entries
}

// BenchmarkSettle settles grants of one unit in batches. An operation is one
// claim; run it with -benchtime 1000000x for a ledger that grows to a million.
func BenchmarkSettle(b *testing.B) {
	benchSettle(b, func(b *testing.B) *sqlledger.Ledger { return openLedger(b, filepath.Join(b.TempDir(), "ledger.db")) })
}

func BenchmarkSettleMySQL(b *testing.B)    { benchSettle(b, benchLedger(servers.MariaDB)) }
func BenchmarkSettlePostgres(b *testing.B) { benchSettle(b, benchLedger(servers.Postgres)) }

// benchLedger opens an empty ledger in a server.
func benchLedger(get func() (*servers.Server, error)) func(b *testing.B) *sqlledger.Ledger {
	return func(b *testing.B) *sqlledger.Ledger {
		s, err := get()
		if err != nil {
			b.Fatal(err)
		}
		url, _ := s.DatabaseFor(b)
		return openAt(b, url)
	}
}

func benchSettle(b *testing.B, open func(b *testing.B) *sqlledger.Ledger) {
	for _, size := range []int{512, 4096, 16384} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			l := open(b)
			c := benchCampaign(b, l)
			shard := dibs.ShardID{Campaign: c.Number}
			load, err := l.LoadShard(b.Context(), c, shard, live.Opener{})
			if err != nil {
				b.Fatal(err)
			}
			last := dibs.Cursor{Epoch: load.Epoch, Seq: 1}
			open := live.Batch{Campaign: c, Shard: shard, Fence: load.Epoch, To: last, Entries: []dibs.Entry{{Cursor: last, Kind: dibs.EntryOpen}}}
			if err := l.Settle(b.Context(), []live.Batch{open}); err != nil {
				b.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				b.StopTimer()
				entries := grants(random, last, min(size, b.N-done))
				batch := live.Batch{Campaign: c, Shard: shard, Fence: load.Epoch, From: last, To: entries[len(entries)-1].Cursor, Entries: entries}
				b.StartTimer()
				if err := l.Settle(b.Context(), []live.Batch{batch}); err != nil {
					b.Fatal(err)
				}
				last = batch.To
				done += len(entries)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
			b.StopTimer()
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkLoadShard loads a shard; an operation is one claim of it.
func BenchmarkLoadShard(b *testing.B) {
	l := openLedger(b, filepath.Join(b.TempDir(), "ledger.db"))
	c := benchCampaign(b, l)
	shard := dibs.ShardID{Campaign: c.Number}
	load, err := l.LoadShard(b.Context(), c, shard, live.Opener{})
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	at := dibs.Cursor{Epoch: load.Epoch, Seq: 1}
	entries := append([]dibs.Entry{{Cursor: at, Kind: dibs.EntryOpen}}, grants(random, at, b.N)...)
	batch := live.Batch{Campaign: c, Shard: shard, Fence: load.Epoch, To: entries[len(entries)-1].Cursor, Entries: entries}
	if err := l.Settle(b.Context(), []live.Batch{batch}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	load, err = l.LoadShard(b.Context(), c, shard, live.Opener{})
	b.StopTimer()
	if err != nil || len(load.Holdings) != b.N {
		b.Fatalf("%d of %d claims loaded: %v", len(load.Holdings), b.N, err)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkJournalAppend appends group commits of several sizes. An operation
// is one commit.
func BenchmarkJournalAppend(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 150 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			j := openJournal(b, filepath.Join(b.TempDir(), "journal.db"))
			generation, err := j.Acquire(b.Context(), "the benchmark")
			if err != nil {
				b.Fatal(err)
			}
			payload := make([]byte, size)
			for i := range payload {
				payload[i] = byte(rand.Uint32())
			}
			rows := []dibs.JournalRow{{Shard: dibs.ShardID{Campaign: 1}, Epoch: 1, Payload: payload}}
			var worst time.Duration
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				rows[0].First, rows[0].Last = uint32(i+1), uint32(i+1)
				began := time.Now()
				if err := j.Append(b.Context(), generation, rows); err != nil {
					b.Fatal(err)
				}
				worst = max(worst, time.Since(began))
			}
			b.ReportMetric(float64(worst.Microseconds()), "µs-worst")
			b.StopTimer()
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
