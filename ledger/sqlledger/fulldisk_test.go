package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// TestFullDisk runs a ledger and a journal on a small file system of their own
// until it is full. The file system is mounted in a name space of the helper's,
// and goes with it.
func TestFullDisk(t *testing.T) {
	for _, part := range []string{"fill up a ledger", "fill up a journal"} {
		t.Run(part, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), helperPart+"="+part, helperPath+"="+t.TempDir())
			attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			if os.Geteuid() != 0 {
				// Without root rights, mounting works as root of a user name space.
				attr.Cloneflags |= syscall.CLONE_NEWUSER
				attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
				attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
			}
			cmd.SysProcAttr = attr
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// smallDisk mounts a file system of 4 MiB.
func smallDisk(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		return fmt.Errorf("mount a small file system: %w", err)
	}
	return nil
}

// fill writes a file until nothing fits any more.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return f.Close()
}

// unavailable checks that an error is one of a full disk.
func unavailable(what string, err error) error {
	if !errors.Is(err, dibs.ErrUnavailable) {
		return fmt.Errorf("%s: got error %v, want unavailable", what, err) //nolint:errorlint // err may be nil
	}
	return nil
}

func fillUpLedger(dir string) error {
	if err := smallDisk(dir); err != nil {
		return err
	}
	ctx := context.Background()
	l, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
	if err != nil {
		return err
	}
	c := &dibs.Campaign{ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 1e6}}
	if err := l.InsertCampaign(ctx, c, nil); err != nil {
		return err
	}
	shard := dibs.ShardID{Campaign: c.Number}
	load, err := l.LoadShard(ctx, c, shard, live.Opener{})
	if err != nil {
		return err
	}
	b := bigBatch(c, load.Epoch, 1_000)
	filler := filepath.Join(dir, "filler")
	if err := fill(filler); err != nil {
		return err
	}
	if err := unavailable("settle on a full disk", l.Settle(ctx, []live.Batch{b})); err != nil {
		return err
	}
	// Reading goes on, and shows that nothing was written.
	totals, err := l.Totals(ctx, shard)
	if err != nil || totals.StockLeft != 1e6 || totals.Position != (dibs.Cursor{}) {
		return fmt.Errorf("totals on a full disk: %+v, %w", totals, err)
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	if err := l.Settle(ctx, []live.Batch{b}); err != nil {
		return fmt.Errorf("settle when there is space again: %w", err)
	}
	a, err := l.Audit(ctx, c)
	if err != nil || a.Claims != 1_000 || len(a.BadTotals) > 0 {
		return fmt.Errorf("the audit afterwards: %+v, %w", a, err)
	}
	return l.Close()
}

func fillUpJournal(dir string) error {
	if err := smallDisk(dir); err != nil {
		return err
	}
	ctx := context.Background()
	path := filepath.Join(dir, "journal.db")
	j, err := sqlledger.OpenSQLiteJournal(ctx, path, sqlledger.Options{Migrate: true})
	if err != nil {
		return err
	}
	generation, err := j.Acquire(ctx, "the test")
	if err != nil {
		return err
	}
	shard := dibs.ShardID{Campaign: 1}
	seq := uint32(0)
	add := func(size int) error {
		row := dibs.JournalRow{Shard: shard, Epoch: 1, First: seq + 1, Last: seq + 1, Payload: make([]byte, size)}
		return j.Append(ctx, generation, []dibs.JournalRow{row})
	}
	for ; seq < 3; seq++ {
		if err := add(10_000); err != nil {
			return err
		}
	}
	filler := filepath.Join(dir, "filler")
	if err := fill(filler); err != nil {
		return err
	}
	if err := unavailable("append on a full disk", add(200_000)); err != nil {
		return err
	}
	if err := endsAt(j, seq); err != nil {
		return err
	}
	// Whether or not reopening works on a full disk, the end stays true.
	if err := j.Reopen(ctx); err != nil {
		if err := unavailable("reopen on a full disk", err); err != nil {
			return err
		}
	}
	if err := endsAt(j, seq); err != nil {
		return err
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	if err := j.Reopen(ctx); err != nil {
		return fmt.Errorf("reopen when there is space again: %w", err)
	}
	if err := endsAt(j, seq); err != nil {
		return err
	}
	if err := add(200_000); err != nil {
		return fmt.Errorf("append when there is space again: %w", err)
	}
	if err := j.Close(); err != nil {
		return err
	}
	if j, err = sqlledger.OpenSQLiteJournal(ctx, path, sqlledger.Options{}); err != nil {
		return err
	}
	if err := endsAt(j, seq+1); err != nil {
		return err
	}
	return j.Close()
}
