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
	// in counts, by group, the things that NoteIn noted.
	in map[string]int
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
func (r *Recent) Note(thing string, at time.Time) bool { return r.NoteIn("", thing, at, mostRecent) }

// NoteIn is Note of a thing that belongs to a group, of which most things are remembered.
func (r *Recent) NoteIn(group, thing string, at time.Time, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if minute := at.Unix() / 60; r.noted == nil || r.minute != minute {
		r.minute, r.noted, r.in = minute, map[string]struct{}{}, map[string]int{}
	}
	if len(r.noted) >= mostRecent || r.in[group] >= most {
		return false
	}
	r.in[group]++
	r.noted[thing] = struct{}{}
	return true
}
