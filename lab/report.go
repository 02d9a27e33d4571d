package lab

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/dibs-dev/dibs/lab/strategies"
)

// Report is what the lab found. Times are milliseconds, where the name does not say otherwise.
type Report struct {
	Preset   string    `json:"preset"`
	At       time.Time `json:"at"`
	Machine  string    `json:"machine"`
	Command  string    `json:"command,omitempty"`
	Users    int       `json:"users"`
	Requests int       `json:"requests"`
	Stock    int64     `json:"stock"`
	TimeMS   float64   `json:"time_ms"`
	TookMS   float64   `json:"took_ms"`
	// SyncMS is how long the disk takes to keep a small write: what every durable answer waits for.
	SyncMS  float64  `json:"disk_sync_ms"`
	Results []Result `json:"results"`
	// Planned is how many runs there were to be: fewer results say that the lab was stopped.
	Planned int `json:"planned"`
	// Surprises are the strategies that failed, and safe ones that were not.
	Surprises []string `json:"surprises"`

	// redisGiven says that Redis is a server of the caller's, whose disk is not this one.
	redisGiven bool
}

// Result is what one strategy did on one database.
type Result struct {
	Strategy    string `json:"strategy"`
	Idea        string `json:"idea"`
	Does        string `json:"does"`
	Teaches     string `json:"teaches"`
	Database    string `json:"database,omitempty"`
	Concurrency int    `json:"concurrency"`
	// InProcess says that it asked no server: its figures do not compare with the others.
	InProcess bool              `json:"in_process"`
	Breaks    []strategies.Flaw `json:"breaks"`
	// Skipped says why it was not run; Stopped, that its time was over before all
	// presses were answered; Failed is the first error that a caller saw.
	Skipped string `json:"skipped,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
	Failed  string `json:"failed,omitempty"`

	Granted int64 `json:"granted"`
	SoldOut int64 `json:"sold_out"`
	Again   int64 `json:"limit_reached"`
	Busy    int64 `json:"busy"`
	Errors  int64 `json:"errors"`

	// Seconds is the time of the answers; SettleMS what writing took after the
	// last one.
	Seconds  float64 `json:"seconds"`
	SettleMS float64 `json:"settle_ms"`
	// GrantsPerSecond counts what was granted and is an order, until the last one.
	GrantsPerSecond  float64 `json:"grants_per_second"`
	AnswersPerSecond float64 `json:"answers_per_second"`
	P50MS            float64 `json:"p50_ms"`
	P90MS            float64 `json:"p90_ms"`
	P99MS            float64 `json:"p99_ms"`

	Orders   int64 `json:"orders"`
	Oversold int64 `json:"oversold"`
	// Duplicates is nil when a user may have many, Undersold when the presses
	// were not all answered.
	Duplicates *int64 `json:"duplicates"`
	Undersold  *int64 `json:"undersold"`
	Unkept     int64  `json:"told_yes_without_an_order"`

	// Calls for each answer; nil when unknown. Those of dibs are scripts, and the
	// statements that the server counted.
	RedisPerClaim *float64 `json:"redis_calls_per_claim"`
	SQLPerClaim   *float64 `json:"sql_calls_per_claim"`
}

// Answers is how many presses were answered. An error is no answer.
func (r *Result) Answers() int64 { return r.Granted + r.SoldOut + r.Again + r.Busy }

// Broke returns the promises that were seen broken. One that is not known, nil, is not broken.
func (r *Result) Broke() []strategies.Flaw {
	var broke []strategies.Flaw
	for _, f := range []struct {
		flaw strategies.Flaw
		n    *int64
	}{{strategies.Oversold, &r.Oversold}, {strategies.Duplicates, r.Duplicates}, {strategies.Undersold, r.Undersold}, {strategies.Unkept, &r.Unkept}} {
		// One case is enough: these are promises, not rates.
		if f.n != nil && *f.n > 0 {
			broke = append(broke, f.flaw)
		}
	}
	return broke
}

// Verdict is a word for it: "safe"; "unsafe" when a strategy broke a promise and is known to break
// some; "unsafe, lucky" when it is known to and did not in this run; "BROKEN" when a strategy that is
// known to be safe broke one, which is a defect.
func (r *Result) Verdict() string {
	broke := r.Broke()
	switch {
	case r.Skipped != "":
		return "not run"
	case slices.ContainsFunc(broke, func(f strategies.Flaw) bool { return !slices.Contains(r.Breaks, f) }):
		if len(r.Breaks) == 0 {
			return "BROKEN"
		}
		return "unsafe"
	case len(broke) > 0:
		return "unsafe"
	case len(r.Breaks) > 0:
		return "unsafe, lucky"
	}
	return "safe"
}

// OK says that every strategy was run, none failed, and no safe one broke a promise. An unsafe one may
// break its own.
func (r *Report) OK() bool { return len(r.Surprises) == 0 && !r.Cut() }

// Cut says that the lab was stopped before all runs: nothing is known of the others.
func (r *Report) Cut() bool { return len(r.Results) < r.Planned }

// JSON writes the report for machines.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
