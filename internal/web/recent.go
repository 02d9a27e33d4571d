package web

import (
	"sync"
	"time"
)

// mostRecent bounds how many things a Recent remembers.
const mostRecent = 10_000

// Recent remembers what was noted within the present minute, so that what happens again
// and again is noted once a minute. The zero value is ready; it is safe for concurrent use.
// mu guards the fields below it; noted is emptied when minute changes.
type Recent struct {
	mu     sync.Mutex
	minute int64
	noted  map[string]struct{}
}

// Has reports whether a thing was noted in the minute of a time.
func (r *Recent) Has(thing string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.minute != at.Unix()/60 {
		return false
	}
	_, ok := r.noted[thing]
	return ok
}

// Note remembers that a thing was noted, and reports false when too many things were.
func (r *Recent) Note(thing string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if minute := at.Unix() / 60; r.noted == nil || r.minute != minute {
		r.minute, r.noted = minute, map[string]struct{}{}
	}
	if len(r.noted) >= mostRecent {
		return false
	}
	r.noted[thing] = struct{}{}
	return true
}
