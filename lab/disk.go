package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// syncs is how many syncs syncTime measures.
const syncs = 15

// syncTime is how long the disk under a folder takes to keep a small write, the median of some. A
// durable answer waits for one: it is why a few durable callers are as fast as the disk and no
// faster, whatever they ask.
func syncTime(dir string) (took time.Duration, err error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var all []time.Duration
	for range syncs {
		began := time.Now()
		if _, err := f.Write(make([]byte, 512)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return max(all[len(all)/2], time.Microsecond), nil
}
