package live

import (
	"sync"
	"time"
)

// The pauses between attempts to open a shard. One that only found the engine
// absent is made again soon. Those that cost an epoch are made every rejoinSoon,
// so that a campaign is open soon after a fault is gone; but a shard has no more
// than MaxEpoch epochs in its life, and when so many have failed in a row,
// further ones become rare.
const (
	rejoinMin  = time.Second
	rejoinSoon = 5 * time.Second
	rejoinMax  = 10 * time.Minute
	rejoinMany = 100
)

// backoff is the pause after failed attempts, which grows. mu guards every field.
type backoff struct {
	mu    sync.Mutex
	until time.Time
	pause time.Duration
	// spent says that this attempt has cost an epoch, epochs how many those in a
	// row have.
	spent  bool
	epochs int
	// cause is why the last attempt failed; nil when it did not.
	cause error
}

// spend notes that an attempt has cost an epoch.
func (r *backoff) spend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = true
}

// hasSpent reports whether this attempt has cost an epoch.
func (r *backoff) hasSpent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spent
}

// over reports whether it is time for another attempt.
func (r *backoff) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !time.Now().Before(r.until)
}

// forgotten reports whether the last pause was over so long ago that nothing depends on
// it any more.
func (r *backoff) forgotten() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !time.Now().Before(r.until.Add(rejoinMax))
}

// after notes how an attempt ended and returns the pause that follows.
func (r *backoff) after(err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	spent := r.spent
	r.spent, r.cause = false, err
	switch {
	case err == nil:
		r.until, r.pause, r.epochs = time.Time{}, 0, 0
		return 0
	case spent:
		most := rejoinSoon
		if r.epochs++; r.epochs > rejoinMany {
			most = rejoinMax
		}
		r.pause = min(max(2*r.pause, rejoinMin), most)
	default:
		r.pause = rejoinMin
	}
	r.until = time.Now().Add(r.pause)
	return r.pause
}

// end ends the pause: a caller asks for another attempt at once.
func (r *backoff) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
}

// failing returns why the last attempt failed; nil when it did not.
func (r *backoff) failing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}
