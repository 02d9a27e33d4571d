package simulation

import (
	"fmt"
	"sync"
	"time"
)

// scene is what everything in a run shares: the true time, the story, and the book.
// The mutex guards what stands below it.
type scene struct {
	planted Planted
	story   *story
	book    *book

	mu   sync.Mutex
	runs int
	leap time.Duration
}

func newScene(planted Planted) *scene {
	return &scene{planted: planted, story: newStory(), book: newBook()}
}

// now is the true time: the bubble's, and what was skipped of it.
func (s *scene) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.leap)
}

// skip lets time pass in which nothing happens, by all clocks at once.
// It must be quiet: timers of the bubble do not notice.
func (s *scene) skip(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leap += d
}

// newRun names a run of a server, as Redis does with its run id.
func (s *scene) newRun(server string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	return fmt.Sprintf("%s/%d", server, s.runs)
}
