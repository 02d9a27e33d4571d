package servers

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed shim/disk.c
var diskSource []byte

// The layout of struct table in shim/disk.c.
// 255 files are more than the server of a test makes. The numbers are those of the C
// source: both change together.
const (
	diskSlots  = 255
	delayAt    = 0
	slotsAt    = 16
	slotBytes  = 16
	tableBytes = slotsAt + diskSlots*slotBytes
)

// Disk is what a Redis keeps its files on: it knows how much of them was synced.
//
// The server runs with a small library before libc (shim/disk.c, compiled by
// gcc) that notes each file's length when a call of fsync or fdatasync begins
// that then succeeds. PowerLoss kills the server and cuts every file back to
// that length: the least that a disk which honours fsync has after a power
// cut. The names of files count as durable at once.
//
// The server writes the table, which is mapped into its memory; the test reads it
// only after the server was killed, and writes nothing but the delay.
type Disk struct {
	redis *Redis
	table string
}

// StartRedisOnDisk starts a server as StartRedis does, on a disk that can lose
// its power.
func StartRedisOnDisk(dir string, args ...string) (*Redis, *Disk, error) {
	source, library, table := filepath.Join(dir, "disk.c"), filepath.Join(dir, "disk.so"), filepath.Join(dir, "synced")
	if err := os.WriteFile(source, diskSource, 0o600); err != nil {
		return nil, nil, fmt.Errorf("servers: %w", err)
	}
	if out, err := exec.CommandContext(context.Background(), "gcc", "-O2", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("servers: compiling %s: %w\n%s", source, err, out)
	}
	if err := os.WriteFile(table, make([]byte, tableBytes), 0o600); err != nil {
		return nil, nil, fmt.Errorf("servers: %w", err)
	}
	s := &Server{k: &kind{name: "redis"}, dir: dir, env: []string{"LD_PRELOAD=" + library, "DISK_TABLE=" + table}}
	r, err := startRedis(s, func(*Redis) ([]string, error) { return args, nil })
	if err != nil {
		return nil, nil, err
	}
	return r, &Disk{redis: r, table: table}, nil
}

// Slow makes every later sync last longer by d.
func (d *Disk) Slow(by time.Duration) (err error) {
	f, err := os.OpenFile(d.table, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// In µs; the library reads it at each sync.
	_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(by.Microseconds())), delayAt)
	return err
}

// PowerLoss kills the server, cuts its append-only files back to what was
// synced, and returns how many bytes that took. Start starts it on the rest.
// A file that was never synced is cut to nothing. An error leaves the files half cut:
// they must not be used.
func (d *Disk) PowerLoss() (cut int64, err error) {
	d.redis.Kill()
	synced, err := d.synced()
	if err != nil {
		return 0, err
	}
	noted := false
	err = filepath.WalkDir(filepath.Join(d.redis.Dir(), "appendonlydir"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		length, ok := synced[inodeOf(info)]
		noted = noted || ok
		if length >= info.Size() {
			return nil
		}
		cut += info.Size() - length
		return os.Truncate(path, length)
	})
	if err == nil && !noted {
		// Then the library was not loaded, and nothing is known.
		err = errors.New("no sync was seen of any file")
	}
	if err != nil {
		return 0, fmt.Errorf("servers: power loss: %w", err)
	}
	return cut, nil
}

// synced returns the synced lengths of files by their inodes.
func (d *Disk) synced() (map[uint64]int64, error) {
	b, err := os.ReadFile(d.table)
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	lengths := map[uint64]int64{}
	for at := slotsAt; at+slotBytes <= len(b); at += slotBytes {
		if inode := binary.LittleEndian.Uint64(b[at:]); inode != 0 {
			lengths[inode] = int64(binary.LittleEndian.Uint64(b[at+8:]))
		}
	}
	return lengths, nil
}
