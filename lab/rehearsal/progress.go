package rehearsal

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
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
	on       func(Event)
}

// say writes a line.
func (p progress) say(format string, args ...any) {
	if p.to != nil {
		fmt.Fprintf(p.to, format+"\n", args...)
	}
}

// watch shows how far a phase is until the returned function is called. done
// counts up to total; detail is shown beside it.
// stop waits for the last line, so that phases do not mix.
func (p progress) watch(phase string, total int, done func() int64, detail func() string) (stop func()) {
	if p.to == nil && p.on == nil {
		return func() {}
	}
	draw, every := p.lines(phase, total, done, detail), lineEvery
	switch {
	case p.on != nil:
		draw, every = p.events(phase, total, done), redrawEvery
	case p.terminal:
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
		progressbar.OptionSetWriter(p.to), progressbar.OptionShowCount(), progressbar.OptionSetWidth(20),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(true))
	start := time.Now()
	return func(last bool) {
		bar.Describe(fmt.Sprintf("%-10s %s%s", phase, detail(), pace(done(), time.Since(start))))
		// A terminal that cannot be drawn on must not end the rehearsal.
		_ = bar.Set64(min(done(), int64(total)))
		if last {
			_ = bar.Exit()
		}
	}
}

// pace is how many there are a second; empty while the time is too short, or nothing is
// done, for a number that means something.
func pace(done int64, took time.Duration) string {
	if done == 0 || took < paceAfter {
		return ""
	}
	return fmt.Sprintf(" %s/s", thousands(int64(float64(done)/took.Seconds())))
}

// paceAfter is how long a phase runs before its pace is shown.
const paceAfter = 500 * time.Millisecond

func none() string { return "" }

// Event is something that happens in a rehearsal: how far a phase is, which
// campaign is loaded, or promises that could be judged by now.
type Event struct {
	// Phase is what is going on: connecting, pressing, repeating, reading, crediting.
	Phase string `json:"phase,omitempty"`
	// Done of Total are done of the phase.
	Done  int64 `json:"done,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Campaign is told once, before the load.
	Campaign string `json:"campaign_id,omitempty"`
	// Verdicts are those that are known by now. The report has the last word.
	Verdicts []Verdict `json:"promises,omitempty"`
}

// tell passes an event on.
func (p progress) tell(e Event) {
	if p.on != nil {
		p.on(e)
	}
}

// events tells how far a phase is.
func (p progress) events(phase string, total int, done func() int64) func(last bool) {
	return func(bool) { p.tell(Event{Phase: phase, Done: done(), Total: int64(total)}) }
}

func thousands(n int64) string { return humanize.Comma(n) }
