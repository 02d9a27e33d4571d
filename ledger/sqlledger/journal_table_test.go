package sqlledger_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/ledgertest"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// TestAppendCommitFails: after a failed commit nothing is appended before the
// journal is reopened and has told where it ends.
func TestAppendCommitFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openJournal(t, path)
	generation, err := j.Acquire(t.Context(), "the test")
	if err != nil {
		t.Fatal(err)
	}
	row := func(seq uint32) []dibs.JournalRow {
		return []dibs.JournalRow{{Shard: dibs.ShardID{Campaign: 1}, Epoch: 1, First: seq, Last: seq, Payload: []byte("x")}}
	}
	if err := j.Append(t.Context(), generation, row(1)); err != nil {
		t.Fatal(err)
	}
	mend := breakCommit(t, path, "journal")
	unknownEffect(t, "an append whose commit fails", j.Append(t.Context(), generation, row(2)))
	mend()
	if err := j.Append(t.Context(), generation, row(2)); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("append before reopening: %v", err)
	}
	if err := j.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := endsAt(j, 1); err != nil {
		t.Error(err)
	}
	if err := j.Append(t.Context(), generation, row(2)); err != nil {
		t.Errorf("append after reopening: %v", err)
	}
	if err := endsAt(j, 2); err != nil {
		t.Error(err)
	}
	closeAll(t, j)
}

// TestLogIsBounded appends and settles far more than the write-ahead logs hold:
// they are copied back and begun anew.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openJournal(t, path)
	generation, err := j.Acquire(t.Context(), "the test")
	if err != nil {
		t.Fatal(err)
	}
	const size, appends = 1 << 20, 100
	for seq := range uint32(appends) {
		rows := []dibs.JournalRow{{Shard: dibs.ShardID{Campaign: 1}, Epoch: 1, First: seq + 1, Last: seq + 1, Payload: make([]byte, size)}}
		if err := j.Append(t.Context(), generation, rows); err != nil {
			t.Fatal(err)
		}
		if _, err := j.ReadRows(t.Context(), dibs.ShardID{Campaign: 1}, dibs.Cursor{Epoch: 1, Seq: seq}, 1); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() > 32<<20 {
		t.Errorf("after %d MiB the log has %d MiB: %v", appends*size>>20, log.Size()>>20, err)
	}
	closeAll(t, j)
}

// TestTwoProcesses lets another process own the journal: it cannot be acquired
// while that one lives, and can as soon as it is killed.
func TestTwoProcesses(t *testing.T) {
	twoProcesses(t, filepath.Join(t.TempDir(), "journal.db"))
}

func TestServerTwoProcesses(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		twoProcesses(t, url)
	})
}

func twoProcesses(t *testing.T, path string) {
	first, line := startHelper(t, "own the journal", path)
	generation, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		t.Fatalf("the helper said %q", line)
	}
	j := openJournalAt(t, addressOf(path))
	_, err = j.Acquire(t.Context(), "the second process")
	if !errors.Is(err, dibs.ErrOwned) || !strings.Contains(fmt.Sprint(err), "the first process") {
		t.Errorf("acquire a journal that is owned: %v", err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("the helper ended before it was killed")
	}
	next, err := j.Acquire(t.Context(), "the second process")
	if err != nil {
		t.Fatalf("acquire the journal of a process that was killed: %v", err)
	}
	if next <= generation {
		t.Errorf("generation %d after %d", next, generation)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKilledWhileAppending kills a process that appends: every row that it said
// was durable is there, without a gap.
func TestKilledWhileAppending(t *testing.T) {
	for round := range 5 {
		killedWhileAppending(t, filepath.Join(t.TempDir(), "journal.db"), 20+37*round)
	}
}

func TestServerKilledWhileAppending(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		for round := range 2 {
			url, _ := s.DatabaseFor(t)
			killedWhileAppending(t, url, 20+37*round)
		}
	})
}

// killedWhileAppending kills the process after a number of appends.
func killedWhileAppending(t *testing.T, path string, appends int) {
	t.Helper()
	p, line := startHelper(t, "own, append, break", path)
	var said uint32
	for n := 0; ; n++ {
		seq, err := strconv.ParseUint(line, 10, 32)
		if err != nil {
			t.Fatalf("the helper said %q", line)
		}
		said = uint32(seq)
		if n == appends {
			break
		}
		if line, err = p.out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		line = strings.TrimSpace(line)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err == nil {
		t.Error("the helper ended before it was killed")
	}
	j := openJournalAt(t, addressOf(path))
	shard := dibs.ShardID{Campaign: 1}
	last, err := j.Last(t.Context(), shard)
	if err != nil || last.Seq < said {
		t.Errorf("the journal ends at %s, %d was durable: %v", last, said, err)
	}
	rows, err := j.ReadRows(t.Context(), shard, dibs.Cursor{}, 1_000_000)
	if err != nil || len(rows) != int(last.Seq) {
		t.Errorf("%d rows up to %s: %v", len(rows), last, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func journalPath(j *sqlledger.JournalTable) string { return sqlledger.PathOf(j) }

// TestMigrateOwnedJournal: another process cannot migrate an owned journal.
func TestMigrateOwnedJournal(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "journal.db"))
	if _, err := j.Acquire(t.Context(), "the owner"); err != nil {
		t.Fatal(err)
	}
	other, err := sqlledger.OpenSQLiteJournal(t.Context(), journalPath(j), sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatalf("open a journal that is up to date: %v", err)
	}
	if _, err := other.Migrate(t.Context()); !errors.Is(err, dibs.ErrOwned) {
		t.Errorf("migrate a journal that is owned: %v", err)
	}
	closeAll(t, other, j)
}

func TestMySQLJournal(t *testing.T) { runJournal(t, servers.MariaDB) }

func runJournal(t *testing.T, get func() (*servers.Server, error)) {
	t.Parallel()
	s, err := get()
	if err != nil {
		t.Fatal(err)
	}
	ready := tables{t: t, s: s, make: func(url string) { closeAll(t, openJournalAt(t, url)) }}
	ledgertest.RunJournal(t, func(t *testing.T) func() dibs.JournalStore {
		url := ready.take(t)
		return func() dibs.JournalStore { return openJournalAt(t, url) }
	})
}

func TestSQLiteJournal(t *testing.T) {
	ledgertest.RunJournal(t, func(t *testing.T) func() dibs.JournalStore {
		path := filepath.Join(t.TempDir(), "journal.db")
		return func() dibs.JournalStore { return openJournal(t, path) }
	})
}

// TestServerTooLarge: what is larger than the server takes is refused as a
// whole, says what to do, and hurts nothing else.
func TestServerTooLarge(t *testing.T) {
	s, err := servers.MariaDB()
	if err != nil {
		t.Fatal(err)
	}
	url, _ := s.DatabaseFor(t)
	j := openJournalAt(t, url)
	defer closeAll(t, j)
	generation, err := j.Acquire(t.Context(), "the test")
	if err != nil {
		t.Fatal(err)
	}
	large := oneRow(1)
	large[0].Payload = make([]byte, 17<<20)
	err = j.Append(t.Context(), generation, large)
	if err == nil || !strings.Contains(err.Error(), "max_allowed_packet") {
		t.Errorf("17 MiB: %v", err)
	}
	for seq, size := range []int{15 << 20, 1} {
		row := oneRow(uint32(seq + 1))
		row[0].Payload = make([]byte, size)
		if err := j.Append(t.Context(), generation, row); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	rows, err := j.ReadRows(t.Context(), dibs.ShardID{Campaign: 1}, dibs.Cursor{}, 10)
	if err != nil || len(rows) != 2 || len(rows[0].Payload) != 15<<20 {
		t.Error(fmt.Sprintf("%d rows", len(rows)), err)
	}
}

// TestServerAppendCut is TestServerCommitCut for the journal, whose lock goes
// with the connection: the owner takes it again, and no other process gets it.
func TestServerAppendCut(t *testing.T) {
	for _, afterwards := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server received it: %v", afterwards), func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *servers.Server) {
				url, _ := s.DatabaseFor(t)
				p := newProxy(t, s.Port())
				j := openJournalAt(t, p.through(url))
				defer closeAll(t, j)
				generation, err := j.Acquire(t.Context(), "the test")
				if err != nil {
					t.Fatal(err)
				}
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				must(j.Append(t.Context(), generation, oneRow(1)))
				p.cutNext("COMMIT", afterwards)
				unknownEffect(t, "an append whose commit is cut", j.Append(t.Context(), generation, oneRow(2)))
				if err := j.Append(t.Context(), generation, oneRow(2)); !errors.Is(err, dibs.ErrUnavailable) {
					t.Errorf("append before reopening: %v", err)
				}
				must(j.Reopen(t.Context()))
				end := uint32(1)
				if afterwards {
					end = 2
				}
				must(endsAt(j, end))
				other := openJournalAt(t, url)
				defer closeAll(t, other)
				if _, err := other.Acquire(t.Context(), "another process"); !errors.Is(err, dibs.ErrOwned) {
					t.Errorf("a second owner: %v", err)
				}
				must(j.Append(t.Context(), generation, oneRow(end+1)))
				must(endsAt(j, end+1))
			})
		})
	}
}

// TestServerLockLost ends the owner's connection: the owner takes the lock back
// by itself, unless another process was faster, which fences it.
func TestServerLockLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		p := newProxy(t, s.Port())
		j := openJournalAt(t, p.through(url))
		defer closeAll(t, j)
		generation, err := j.Acquire(t.Context(), "the test")
		if err == nil {
			err = j.Append(t.Context(), generation, oneRow(1))
		}
		if err != nil {
			t.Fatal(err)
		}
		p.cutAll()
		p.awaitEnd()
		if err := j.Append(t.Context(), generation, oneRow(2)); err != nil {
			t.Errorf("append on a new connection: %v", err)
		}
		other := openJournalAt(t, url)
		defer closeAll(t, other)
		if _, err := other.Acquire(t.Context(), "another process"); !errors.Is(err, dibs.ErrOwned) {
			t.Errorf("a second owner: %v", err)
		}
		p.cutAll()
		p.awaitEnd()
		if _, err := other.Acquire(t.Context(), "another process"); err != nil {
			t.Errorf("acquire while the owner is away: %v", err)
		}
		if err := j.Append(t.Context(), generation, oneRow(3)); !errors.Is(err, dibs.ErrFenced) {
			t.Errorf("append of the one that was away: %v", err)
		}
		if err := endsAt(other, 2); err != nil {
			t.Error(err)
		}
	})
}
