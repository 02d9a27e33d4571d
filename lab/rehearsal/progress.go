package rehearsal

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// How often progress is shown: on a terminal, and as lines elsewhere.
const (
	redrawEvery = 100 * time.Millisecond
	lineEvery   = time.Second
)

// progress shows what is going on to whoever watches: as a bar on a terminal,
// as a line now and then elsewhere.
type progress struct {
	to       io.Writer
	terminal bool
}

// say writes a line.
func (p progress) say(format string, args ...any) {
	if p.to != nil {
		fmt.Fprintf(p.to, format+"\n", args...)
	}
}

// watch shows how far a phase is until the returned function is called. done
// counts up to total; detail is shown beside it.
func (p progress) watch(phase string, total int, done func() int64, detail func() string) (stop func()) {
	if p.to == nil {
		return func() {}
	}
	draw, every := p.lines(phase, total, done, detail), lineEvery
	if p.terminal {
		draw, every = p.bar(phase, total, done, detail), redrawEvery
	}
	stopped := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				draw(false)
			case <-stopped:
				draw(true)
				return
			}
		}
	})
	return func() {
		close(stopped)
		group.Wait()
	}
}

func (p progress) lines(phase string, total int, done func() int64, detail func() string) func(last bool) {
	start := time.Now()
	return func(bool) {
		line := fmt.Sprintf("%-10s %s of %s in %.1fs", phase, thousands(done()), thousands(int64(total)), time.Since(start).Seconds())
		if d := detail(); d != "" {
			line += ": " + d
		}
		p.say("%s", line)
	}
}

func (p progress) bar(phase string, total int, done func() int64, detail func() string) func(last bool) {
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(p.to), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("requests"), progressbar.OptionSetWidth(20),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(true))
	return func(last bool) {
		bar.Describe(fmt.Sprintf("%-10s %s", phase, detail()))
		// A terminal that cannot be drawn on must not end the rehearsal.
		_ = bar.Set64(min(done(), int64(total)))
		if last {
			_ = bar.Exit()
		}
	}
}

func none() string { return "" }
