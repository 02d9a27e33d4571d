package dibs

import "fmt"

// The levels of durability: what a yes survives. docs/GUARANTEES.md says how
// far each goes, and what it asks of Redis.
const (
	// LevelNone promises nothing of what is answered.
	LevelNone = "none"
	// LevelRelaxed survives a crash of any process; a power cut may take about
	// the last two seconds.
	LevelRelaxed = "relaxed"
	// LevelDurable survives a power cut: an answer waits for the disk.
	LevelDurable = "durable"
	// LevelReplicated is LevelDurable, and replicas have it before an answer.
	LevelReplicated = "replicated"
	// LevelLedgered survives the loss of the engine: the service answers when
	// the ledger has it. No engine gives it by itself.
	LevelLedgered = "ledgered"
)

// Levels returns all levels, the weakest first.
func Levels() []string {
	return []string{LevelNone, LevelRelaxed, LevelDurable, LevelReplicated, LevelLedgered}
}

// The ways in which an engine treats claims while its store gives less than its level.
const (
	// RefuseLost refuses them as Unavailable, until the level is given again.
	RefuseLost = "refuse"
	// WarnLost decides them all the same, and the service's health warns. A claim that
	// could sell units twice is refused with it too.
	WarnLost = "warn"
)

// LostRules returns the words for what happens to claims when the level is lost.
func LostRules() []string { return []string{RefuseLost, WarnLost} }

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
