package sqlledger_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

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

// TestKilledWhileAppending kills a process that appends: every row that it
// said was durable is there, without a gap.
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
