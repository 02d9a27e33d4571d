package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dibs-dev/dibs/internal/memory"
)

// Run serves until ctx ends, then drains. nil means that every answer that was given
// is kept.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, len(s.faces))
	for _, f := range s.faces {
		go func() {
			if s.certs != nil {
				failed <- f.http.ServeTLS(f.ln, "", "")
				return
			}
			failed <- f.http.Serve(f.ln)
		}()
	}
	go memory.Ease(ctx)
	watching, stopWatching := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { watch(watching, s.log, s.watched()) })
	if s.certs != nil {
		watcher.Go(func() { s.certs.watchOpen(watching, s.log) })
	}
	var err error
	select {
	case failure := <-failed:
		err = fmt.Errorf("serving: %w", failure)
	case <-ctx.Done():
	}
	// The watcher uses the node, which drain closes.
	stopWatching()
	watcher.Wait()
	return errors.Join(err, s.drain(ctx))
}

// Close releases what a server holds that never ran.
func (s *Server) Close(ctx context.Context) error {
	var errs []error
	for _, f := range s.faces {
		errs = append(errs, f.ln.Close())
	}
	if s.hub != nil {
		s.hub.Close()
	}
	s.console.close()
	if s.tokens != nil {
		s.tokens.Close()
	}
	if s.node != nil {
		errs = append(errs, s.node.Close(context.WithoutCancel(ctx)))
	}
	s.closeTracer(ctx)
	return errors.Join(errs...)
}

// drain takes no more connections, finishes the requests under way and settles, all
// within the drain time. Entries that are not settled by then are no failure: they
// are in the journal, and the next start settles them.
func (s *Server) drain(ctx context.Context) error {
	begun := time.Now()
	s.log.Info("stopping: finishing requests, then settling", "drain", s.c.Drain)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.Drain)
	defer cancel()
	// Meanwhile clients with long-lived connections are asked to go to another node.
	left := make(chan error, 1)
	go func() { left <- s.hub.Drain(limit) }()
	s.console.close()
	for _, f := range s.faces {
		if err := f.http.Shutdown(limit); err != nil {
			s.log.Warn("requests were cut off at the end of the drain time", "err", errors.Join(err, f.http.Close()))
		}
	}
	if s.tokens != nil {
		s.tokens.Close()
	}
	if err := <-left; err != nil {
		s.log.Warn("long-lived connections were cut off at the end of the drain time", "err", err)
	}
	s.hub.Close()
	err := s.node.Close(limit)
	s.closeTracer(ctx)
	if onlyTimeout(err) {
		s.log.Warn("the drain time ended before everything was settled; the next start settles the rest")
		err = nil
	}
	if err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	s.log.Info("stopped", "took", time.Since(begun).Round(time.Millisecond))
	return nil
}

// onlyTimeout reports whether an error is, in all its parts, a deadline that passed.
func onlyTimeout(err error) bool {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			if !onlyTimeout(e) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}
