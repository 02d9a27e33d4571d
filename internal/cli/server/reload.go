package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// pollEvery is the time between two looks at the watched files.
const pollEvery = 2 * time.Second

// fileSet is files that take effect together when one of them changes. Only the
// goroutine of watch uses it.
type fileSet struct {
	name  string
	paths []string
	// load puts the content of the files into effect. When it fails, the earlier
	// content stays in effect.
	load func() error
	// seen is the sum of the content at the last look, loaded that of the content in
	// effect.
	seen, loaded [sha256.Size]byte
	// failed is why the last content could not be loaded, so that each problem is
	// logged once.
	failed string
}

// sum returns a hash of the content. The modification times would not do: files are
// also replaced by changing a link.
func (f *fileSet) sum() (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	for _, p := range f.paths {
		b, err := os.ReadFile(p)
		if err != nil {
			return sum, err
		}
		fmt.Fprintf(h, "%d ", len(b))
		h.Write(b)
	}
	h.Sum(sum[:0])
	return sum, nil
}

// watch reloads files that have changed, until ctx ends. It looks at them every
// pollEvery, and at once when SIGHUP comes.
func watch(ctx context.Context, log *slog.Logger, sets []*fileSet) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for _, f := range sets {
		// The files may have changed since the server read them at its start.
		f.reload(log, true)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		complete := false
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			complete = true
			log.Info("SIGHUP: looking at the watched files")
		case <-tick.C:
		}
		for _, f := range sets {
			f.reload(log, complete)
		}
	}
}

// reload loads the files if they have changed and were the same at two looks: a
// file may be half written, and half of a secret may be long enough to pass for
// one. complete says that the files are whole, so that one look is enough.
func (f *fileSet) reload(log *slog.Logger, complete bool) {
	sum, err := f.sum()
	if err == nil && sum == f.loaded {
		return
	}
	if err == nil && sum != f.seen && !complete {
		f.seen = sum
		return
	}
	if err == nil {
		err = f.load()
	}
	if err == nil {
		f.loaded, f.failed = sum, ""
		log.Info("read", "what", f.name)
		return
	}
	// Of a pair one file is replaced first, so that load fails in between: it is
	// called again at the next look.
	if err.Error() != f.failed {
		log.Warn("a file has changed and cannot be used; the earlier content stays in effect", "what", f.name, "err", err)
	}
	f.failed = err.Error()
}
