package dibs

import "fmt"

// Standing is how well something that was examined does.
type Standing string

// The standings. Warn: it works, and something may go wrong that need not.
// Fail: it does not work, or a promise would not hold.
const (
	StandingOK   Standing = "OK"
	StandingWarn Standing = "WARN"
	StandingFail Standing = "FAIL"
)

// Finding is one thing that was examined in what dibs depends on. Its texts
// are for people, in one line each, and hold no secrets.
type Finding struct {
	Standing Standing `json:"standing"`
	// Subject names what was looked at, in a word or two, such as "eviction".
	Subject string `json:"subject"`
	// Found is what is there, Wanted what should be.
	Found  string `json:"found"`
	Wanted string `json:"wanted,omitempty"`
	// Remedy is what to do, for anything but OK.
	Remedy string `json:"remedy,omitempty"`
}

// OK reports whether nothing is to be done.
func (f Finding) OK() bool { return f.Standing == StandingOK }

// String shows the finding in one line.
func (f Finding) String() string {
	if f.OK() {
		return f.Subject + ": " + f.Found
	}
	return fmt.Sprintf("%s is %s, want %s: %s", f.Subject, f.Found, f.Wanted, f.Remedy)
}
