package ledgertest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
)

// JournalFactory makes a new, empty journal, ready for use, and returns a
// function that opens it. Each call of that function opens the same journal
// once more, as another process would: it may read, but not append before it
// has the lease. The suite closes what it opens.
type JournalFactory func(t *testing.T) (open func() dibs.JournalStore)

// RunJournal checks the contract of dibs.JournalStore on journals of the
// factory. A store keeps rows, each a group commit's entries of one shard, and
// does not look into them.
func RunJournal(t *testing.T, factory JournalFactory) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *journalFixture)
	}{
		{"Append", testAppend},
		{"AppendNothingByHalves", testAppendNothingByHalves},
		{"ReadRows", testReadRows},
		{"TrimRows", testTrimRows},
		{"Lease", testLease},
		{"Fence", testFence},
		{"Reopen", testReopen},
		{"ReadWhileAppending", testReadWhileAppending},
		{"Lifetime", testJournalLifetime},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, &journalFixture{t: t, open: opener(t, "journal", factory(t), dibs.JournalStore.Close)})
		})
	}
}

// journalFixture is one test's journal.
type journalFixture struct {
	t    *testing.T
	open func() dibs.JournalStore
}

// acquire opens the journal and takes its lease.
func (f *journalFixture) acquire() (dibs.JournalStore, int64) {
	f.t.Helper()
	j := f.open()
	generation := try(j.Acquire(f.t.Context(), "the test")).must(f.t)
	return j, generation
}

// must fails the test at once on an error.
func (f *journalFixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// last reads the place of a shard's last entry.
func (f *journalFixture) last(j dibs.JournalStore, shard dibs.ShardID) dibs.Cursor {
	f.t.Helper()
	at := try(j.Last(f.t.Context(), shard)).must(f.t)
	return at
}

// rows reads rows and returns where each begins and ends.
func (f *journalFixture) rows(j dibs.JournalStore, shard dibs.ShardID, after dibs.Cursor, most int) string {
	f.t.Helper()
	rows := try(j.ReadRows(f.t.Context(), shard, after, most)).must(f.t)
	var places []string
	for _, r := range rows {
		// The payload was made from the place, so a row with another's content shows.
		if r.Shard != shard || !bytes.Equal(r.Payload, payload(r)) {
			f.t.Errorf("the row of %s at %d.%d-%d has the wrong content", r.Shard, r.Epoch, r.First, r.Last)
		}
		places = append(places, fmt.Sprintf("%d.%d-%d", r.Epoch, r.First, r.Last))
	}
	return strings.Join(places, " ")
}

// shardOne and shardTwo are the shards of the tests.
var (
	shardOne = dibs.ShardID{Campaign: 7, Shard: 0}
	shardTwo = dibs.ShardID{Campaign: 7, Shard: 255}
)

// row makes a row with a payload that tells its place. At is the seq of its
// first entry, in milliseconds, for tests that trim by time.
func row(shard dibs.ShardID, epoch uint16, first, last uint32) dibs.JournalRow {
	r := dibs.JournalRow{Shard: shard, Epoch: epoch, First: first, Last: last, At: int64(first)}
	r.Payload = payload(r)
	return r
}

// payload makes the content of a row from its place, so that a test can tell
// rows apart. Later rows are longer.
func payload(r dibs.JournalRow) []byte {
	text := fmt.Sprintf("%s %d %d %d;", r.Shard, r.Epoch, r.First, r.Last)
	return bytes.Repeat([]byte(text), 1+int(r.First)*40)
}

// testAppend appends rows of several shards and epochs. The end of a shard is
// its last entry, and an empty payload is a row as well. A store must not
// confuse shards of one campaign: shardTwo has the highest number.
func testAppend(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	same(t, "the end of an empty journal", f.last(j, shardOne), dibs.Cursor{})
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, 1, 3)}))
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, 4, 4), row(shardTwo, 2, 1, 9)}))
	same(t, "the first shard's end", f.last(j, shardOne), dibs.Cursor{Epoch: 1, Seq: 4})
	same(t, "the second shard's end", f.last(j, shardTwo), dibs.Cursor{Epoch: 2, Seq: 9})
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 3, 1, 1)}))
	same(t, "the end after a new epoch", f.last(j, shardOne), dibs.Cursor{Epoch: 3, Seq: 1})
	same(t, "the shards", try(j.Shards(t.Context())).must(t), []dibs.ShardID{shardOne, shardTwo})
	empty := row(shardOne, 3, 2, 2)
	empty.Payload = []byte{}
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{empty}))
}

// testAppendNothingByHalves appends a place that is there already: none of the
// rows beside it may be stored either. A commit holds rows of several shards.
// Half of it on disk would be grants of one shard that were answered as failed,
// and came back at the next start.
func testAppendNothingByHalves(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, 1, 3)}))
	err := j.Append(t.Context(), gen, []dibs.JournalRow{row(shardTwo, 1, 1, 1), row(shardOne, 1, 1, 3)})
	refuses(t, "append a place twice", err)
	// An owner reopens after a failed append, since the connection's state is
	// unknown.
	f.must(j.Reopen(t.Context()))
	same(t, "the shard beside it", f.last(j, shardTwo), dibs.Cursor{})
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardTwo, 1, 1, 1)}))
}

// testReadRows reads rows of one shard after a place, in order across epochs.
// Rows are whole: the row within which the limit of entries is reached is the
// last one returned. A place within a row returns that row whole: the engine
// passes over what it has.
func testReadRows(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	for _, r := range []dibs.JournalRow{
		row(shardOne, 1, 1, 3), row(shardTwo, 1, 1, 50), row(shardOne, 1, 4, 4), row(shardOne, 1, 5, 9),
		row(shardOne, 4, 1, 1), row(shardOne, 4, 2, 6),
	} {
		f.must(j.Append(t.Context(), gen, []dibs.JournalRow{r}))
	}
	for _, c := range []struct {
		after dibs.Cursor
		most  int
		want  string
	}{
		{dibs.Cursor{}, 100, "1.1-3 1.4-4 1.5-9 4.1-1 4.2-6"},
		{dibs.Cursor{}, 1, "1.1-3"},
		// Three entries are reached within the first row, four only by the second.
		{dibs.Cursor{}, 3, "1.1-3"},
		{dibs.Cursor{}, 4, "1.1-3 1.4-4"},
		// Entries up to the place do not count: two of the first row do.
		{dibs.Cursor{Epoch: 1, Seq: 1}, 2, "1.1-3"},
		{dibs.Cursor{Epoch: 1, Seq: 1}, 3, "1.1-3 1.4-4"},
		{dibs.Cursor{Epoch: 1, Seq: 3}, 2, "1.4-4 1.5-9"},
		{dibs.Cursor{Epoch: 1, Seq: 6}, 100, "1.5-9 4.1-1 4.2-6"},
		{dibs.Cursor{Epoch: 1, Seq: 9}, 1, "4.1-1"},
		// A place of an epoch without rows, between two that have some.
		{dibs.Cursor{Epoch: 2, Seq: 7}, 100, "4.1-1 4.2-6"},
		{dibs.Cursor{Epoch: 4, Seq: 1}, 100, "4.2-6"},
		{dibs.Cursor{Epoch: 4, Seq: 6}, 100, ""},
		{dibs.Cursor{Epoch: 5, Seq: 1}, 100, ""},
	} {
		same(t, fmt.Sprintf("rows after %s with %d entries", c.after, c.most), f.rows(j, shardOne, c.after, c.most), c.want)
	}
	same(t, "the other shard", f.rows(j, shardTwo, dibs.Cursor{Epoch: 1, Seq: 49}, 10), "1.1-50")
	same(t, "an unknown shard", f.rows(j, dibs.ShardID{Campaign: 8}, dibs.Cursor{}, 10), "")
}

// testTrimRows trims rows that end by a place and were stored before a time.
// Where the journal ended stays known after everything was trimmed, also of
// shards that are listed no more. A journal that forgets where it ended cannot
// tell that the ledger was restored from an older backup.
func testTrimRows(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	var rows []dibs.JournalRow
	for first := uint32(1); first <= 200; first += 2 {
		rows = append(rows, row(shardOne, 1, first, first+1), row(shardTwo, 1, first, first+1))
	}
	f.must(j.Append(t.Context(), gen, append(rows, row(shardOne, 2, 1, 5))))
	trim := func(epoch uint16, seq uint32, before int64) string {
		t.Helper()
		f.must(j.TrimRows(t.Context(), shardOne, dibs.Cursor{Epoch: epoch, Seq: seq}, before))
		return f.rows(j, shardOne, dibs.Cursor{}, 3)
	}
	same(t, "a row that ends later stays", trim(1, 1, 1e12), "1.1-2 1.3-4")
	same(t, "rows up to a place", trim(1, 5, 1e12), "1.5-6 1.7-8")
	// Both bounds have to be passed, the place and the time.
	same(t, "rows stored later stay", trim(1, 100, 5), "1.5-6 1.7-8")
	same(t, "rows stored before", trim(1, 100, 8), "1.9-10 1.11-12")
	same(t, "many rows", trim(1, 198, 1e12), "1.199-200 2.1-5")
	same(t, "a whole epoch", trim(2, 1, 1e12), "2.1-5")
	same(t, "the end", f.last(j, shardOne), dibs.Cursor{Epoch: 2, Seq: 5})
	// Trimming one shard leaves the others as they are.
	same(t, "the other shard", f.rows(j, shardTwo, dibs.Cursor{}, 1), "1.1-2")
	same(t, "everything", trim(2, 5, 1e12), "")
	same(t, "the end when everything is trimmed", f.last(j, shardOne), dibs.Cursor{Epoch: 2, Seq: 5})
	same(t, "the shards", try(j.Shards(t.Context())).must(t), []dibs.ShardID{shardTwo})
}

// testLease lets one process own the journal. Others read, and may neither
// append nor acquire until the owner closes it; the next owner has a higher
// generation. Two engines that append to one journal would grant the same stock
// twice. Reading is free: a check of the data may run beside the server.
func testLease(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	other := f.open()
	_, err := other.Acquire(t.Context(), "another process")
	wants(t, "a second owner", err, dibs.ErrOwned)
	// The message has to name the owner: it is what an operator sees who starts a
	// second process.
	if err != nil && !strings.Contains(err.Error(), "the test") {
		t.Errorf("the error does not name the owner: %v", err)
	}
	// A process that does not own it can still read.
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, 1, 3)}))
	same(t, "what the other one reads", f.last(other, shardOne), dibs.Cursor{Epoch: 1, Seq: 3})
	wants(t, "an append of the other one", other.Append(t.Context(), gen-1, []dibs.JournalRow{row(shardOne, 1, 4, 4)}), dibs.ErrFenced)

	// Closing gives the lease up at once: a restart must not wait for it to run
	// out.
	f.must(j.Close())
	next := try(other.Acquire(t.Context(), "another process")).must(t)
	if next <= gen {
		t.Errorf("generation %d after %d", next, gen)
	}
	f.must(other.Append(t.Context(), next, []dibs.JournalRow{row(shardOne, 1, 4, 4)}))
}

// testFence acquires twice: appends of the older generation are refused and
// store nothing. A process that was stopped for minutes wakes up and writes:
// the check is in the transaction of the append, not before it.
func testFence(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	// The same handle acquires again, as a process does that took its lease back.
	next := try(j.Acquire(t.Context(), "the test, later")).must(t)
	wants(t, "an append of the old generation", j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, 1, 3)}), dibs.ErrFenced)
	same(t, "the end after it", f.last(j, shardOne), dibs.Cursor{})
	f.must(j.Append(t.Context(), next, []dibs.JournalRow{row(shardOne, 1, 1, 3)}))
	same(t, "the end", f.last(j, shardOne), dibs.Cursor{Epoch: 1, Seq: 3})
}

// testReopen reopens the journal after every append, as an owner does when a
// commit failed: nothing is lost, and the lease is kept. After a failed commit
// the owner does not know what is stored: it reads the end on new connections,
// and must not lose its lease to another process meanwhile.
func testReopen(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	for seq := uint32(1); seq <= 10; seq++ {
		f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, seq, seq)}))
		f.must(j.Reopen(t.Context()))
		same(t, "the end", f.last(j, shardOne), dibs.Cursor{Epoch: 1, Seq: seq})
	}
	wants(t, "a second owner after reopening", errOf(f.open().Acquire(t.Context(), "another process")), dibs.ErrOwned)
}

// testReadWhileAppending reads, trims and appends at the same time: what is
// read has no gap. Settling reads and trims while claims are committed. A
// reader that sees a later row before an earlier one would pass the earlier one
// over.
func testReadWhileAppending(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	const last = 300
	done := make(chan error, 1)
	go func() {
		for seq := uint32(1); seq <= last; seq++ {
			if err := j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, seq, seq)}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var at dibs.Cursor
	for at.Seq < last {
		rows := try(j.ReadRows(t.Context(), shardOne, at, 10)).must(t)
		for _, r := range rows {
			if r.First != at.Seq+1 {
				t.Fatalf("a row at %d after %d", r.First, at.Seq)
			}
			at = dibs.Cursor{Epoch: r.Epoch, Seq: r.Last}
		}
		f.must(j.TrimRows(t.Context(), shardOne, at, 1e12))
		// Ends the reading when the writer has failed, which would leave it waiting.
		if len(rows) == 0 {
			select {
			case err := <-done:
				f.must(err)
				done <- nil
			default:
			}
		}
	}
	f.must(<-done)
}

// testJournalLifetime appends with a context that has ended, which stores
// nothing, and after the end, which is refused. Stored entries are there for
// the next opening. The engine answers its waiting claims by what an append
// returned, so a refused append must have stored nothing.
func testJournalLifetime(t *testing.T, f *journalFixture) {
	j, gen := f.acquire()
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, 1, 3)}))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	four := []dibs.JournalRow{row(shardOne, 1, 4, 4)}
	wants(t, "append with a context that has ended", j.Append(over, gen, four), context.Canceled)
	f.must(j.Reopen(t.Context()))
	same(t, "the end", f.last(j, shardOne), dibs.Cursor{Epoch: 1, Seq: 3})
	f.must(j.Close())
	refuses(t, "append after the end", j.Append(t.Context(), gen, four))

	// The next owner finds what was stored and goes on behind it.
	j, gen = f.acquire()
	same(t, "the end after closing", f.last(j, shardOne), dibs.Cursor{Epoch: 1, Seq: 3})
	f.must(j.Append(t.Context(), gen, []dibs.JournalRow{row(shardOne, 1, 4, 4)}))
}
