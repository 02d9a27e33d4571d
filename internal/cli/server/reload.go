package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// watchEvery is how often files are looked at whose changes count.
const watchEvery = 2 * time.Second

// watchedFiles are files that take effect together when one of them changes.
type watchedFiles struct {
	name  string
	paths []string
	// load makes what is in them take effect; what was before stays when it fails.
	load func() error
	// seen is the sum that was read last: what changes is read when it has stopped
	// to, since whoever writes it may be in the middle.
	seen [sha256.Size]byte
	// loaded is the sum of what took effect last, failed why what came later could
	// not, so that it is told once.
	loaded [sha256.Size]byte
	failed string
}

// sum is the hash of what is in the files.
func (w *watchedFiles) sum() (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	for _, p := range w.paths {
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

// watched are the files whose changes count while the server runs.
func (s *server) watched() []*watchedFiles {
	var list []*watchedFiles
	if s.certs != nil {
		list = append(list, &watchedFiles{name: "certificate", paths: []string{s.certs.cert, s.certs.key}, load: s.certs.load})
	}
	if s.tokens != nil && s.c.JWTSecretFile != "" {
		list = append(list, &watchedFiles{name: "token secrets", paths: []string{s.c.JWTSecretFile}, load: func() error {
			secrets, err := s.c.JWTSecrets()
			if err != nil {
				return fmt.Errorf("%s %w", s.c.JWTSecretFile, err)
			}
			s.tokens.SetSecrets(secrets)
			return nil
		}})
	}
	if s.c.ListsFile != "" {
		list = append(list, s.watchedLists())
	}
	return list
}

// watchFiles makes files take effect that have changed: it looks at them every
// two seconds, and on SIGHUP at once. Their contents are compared, since files
// are also changed by links.
func (s *server) watchFiles(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	list := s.watched()
	for _, w := range list {
		// What changed since they were read at start counts, too.
		s.reload(w, true)
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		told := false
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			told = true
			s.log.Info("SIGHUP: looking at the files that are watched")
		case <-tick.C:
		}
		for _, w := range list {
			s.reload(w, told)
		}
	}
}

// reload makes files take effect when they have changed, and were the same at two
// looks: half a secret may be long enough to be taken for one. atOnce is for who
// says that they are complete.
func (s *server) reload(w *watchedFiles, atOnce bool) {
	sum, err := w.sum()
	if err == nil && sum == w.loaded {
		return
	}
	if err == nil && sum != w.seen && !atOnce {
		w.seen = sum
		return
	}
	if err == nil {
		err = w.load()
	}
	if err == nil {
		w.loaded, w.failed = sum, ""
		s.log.Info("read", "what", w.name)
		return
	}
	// A pair is changed one by one: it is tried again, and told once.
	if err.Error() != w.failed {
		s.log.Warn("a file has changed and cannot be used; what was before stays", "what", w.name, "err", err)
	}
	w.failed = err.Error()
}

// watchedLists are the lists' file, while the server runs.
func (s *server) watchedLists() *watchedFiles {
	return &watchedFiles{name: "lists", paths: []string{s.c.ListsFile}, load: func() error {
		lists, err := s.c.Lists()
		if err != nil {
			return fmt.Errorf("%s %w", s.c.ListsFile, err)
		}
		s.Node.Limits.SetLists(lists)
		return nil
	}}
}
