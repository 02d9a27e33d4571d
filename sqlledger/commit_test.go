package sqlledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs"
)

// breakCommit makes every commit that adds a row to a table fail, at the
// commit itself: a reference that is checked only then points nowhere.
func breakCommit(t *testing.T, path, table string) (mend func()) {
	t.Helper()
	raw(t, path,
		`CREATE TABLE nowhere (id INTEGER PRIMARY KEY)`,
		`CREATE TABLE orphans (id INTEGER REFERENCES nowhere (id) DEFERRABLE INITIALLY DEFERRED)`,
		`CREATE TRIGGER break_commit AFTER INSERT ON `+table+` BEGIN INSERT INTO orphans VALUES (1); END`)
	return func() { raw(t, path, `DROP TRIGGER break_commit`) }
}

// unknownEffect checks that an error says that the effect is not known.
func unknownEffect(t *testing.T, what string, err error) {
	t.Helper()
	var said *dibs.Error
	if !errors.As(err, &said) || said.Reason != dibs.Unavailable || said.Effect != dibs.EffectUnknown {
		t.Errorf("%s: got error %v, want unavailable with an unknown effect", what, err)
	}
}

// TestSettleCommitFails: after a failed commit the ledger goes on, on another
// connection, and the batch can be settled again.
func TestSettleCommitFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openLedger(t, path)
	c := &dibs.Campaign{ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 10}}
	if err := l.InsertCampaign(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	shard := dibs.ShardID{Campaign: c.Number}
	load, err := l.LoadShard(t.Context(), c, shard, dibs.Opener{})
	if err != nil {
		t.Fatal(err)
	}
	b := bigBatch(c, load.Epoch, 3)
	mend := breakCommit(t, path, "claims")
	unknownEffect(t, "a settle whose commit fails", l.Settle(t.Context(), []dibs.Batch{b}))
	if totals, err := l.Totals(t.Context(), shard); err != nil || totals.StockLeft != 10 {
		t.Errorf("totals after it: %+v, %v", totals, err)
	}
	mend()
	if err := l.Settle(t.Context(), []dibs.Batch{b}); err != nil {
		t.Errorf("the same batch again: %v", err)
	}
	if totals, err := l.Totals(t.Context(), shard); err != nil || totals.StockLeft != 7 {
		t.Errorf("totals after that: %+v, %v", totals, err)
	}
	closeAll(t, l)
}

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

// TestLogIsBounded appends and settles far more than the write-ahead logs
// hold: they are copied back and begun anew.
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

// TestEpochsEnd: a shard that has used up its epochs says so and stays.
func TestEpochsEnd(t *testing.T) {
	path, l, _, units := planted(t)
	raw(t, path, `UPDATE positions SET epoch = 4095`)
	for range 2 {
		_, err := l.LoadShard(t.Context(), units, dibs.ShardID{Campaign: units.Number}, dibs.Opener{})
		if !errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("load a shard past its last epoch: %v", err)
		}
	}
}
