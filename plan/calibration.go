package plan

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Format is the format of the calibrations that this version reads and writes. It
// rises whenever a cost changes its meaning.
const Format = 1

// stale is the age from which a calibration is refused: by then machines, Redis,
// databases and dibs itself have changed.
const stale = 365 * 24 * time.Hour

// Calibration is what the steps of a claim cost on some machines. Times are in
// microseconds: of a processor, unless a field says otherwise.
type Calibration struct {
	Format int `json:"format"`
	// Version is the version of dibs that was measured; empty in a build without.
	Version    string    `json:"version,omitempty"`
	MeasuredAt time.Time `json:"measured_at"`
	// Machine says in a line what it was measured on. Source is where it came from:
	// a file, or the program itself.
	Machine string `json:"machine"`
	Source  string `json:"source,omitempty"`

	Client  ClientCost             `json:"client"`
	Node    NodeCost               `json:"node"`
	Engines map[string]*EngineCost `json:"engines"`
	Ledgers map[string]*LedgerCost `json:"ledgers"`
	Sizes   Sizes                  `json:"sizes"`
}

// ClientCost is what a client of dibs rehearse needs for a request, and beside that
// for the first one on a connection.
type ClientCost struct {
	RequestUS float64 `json:"request_us"`
	FirstUS   float64 `json:"first_us"`
}

// NodeCost is what a node needs for a request over HTTP, from reading it to
// writing the answer, without the engine and without settling; and beside that for
// the first one on a connection.
type NodeCost struct {
	GrantedUS float64 `json:"granted_us"`
	RefusedUS float64 `json:"refused_us"`
	FirstUS   float64 `json:"first_us"`
}

// EngineCost is what deciding costs. A step decides all claims of a batch: a call
// of Redis, or a commit of the memory engine's journal.
type EngineCost struct {
	// StepUS and ClaimUS are for a step and for each claim of it, on the core that
	// decides. The memory engine spends them on the node.
	StepUS  float64 `json:"step_us"`
	ClaimUS float64 `json:"claim_us"`
	// SyncUS is how long the disk takes for a step, which no processor waits for.
	SyncUS float64 `json:"sync_us"`
	// ReadUS is for each entry that a settler reads back.
	ReadUS float64 `json:"read_us"`
}

// LedgerCost is what settling costs.
type LedgerCost struct {
	// CommitUS and RowUS are how long the ledger takes for a transaction and for
	// each row of it. SQLite spends them on the node.
	CommitUS float64 `json:"commit_us"`
	RowUS    float64 `json:"row_us"`
	// NodeUS is what the node itself needs for a row.
	NodeUS float64 `json:"node_us"`
}

// Sizes are bytes.
type Sizes struct {
	// Request and Answer are what goes over the wire for a claim, headers included.
	Request float64 `json:"request"`
	Answer  float64 `json:"answer"`
	// Connection is what a node keeps for an open connection.
	Connection float64 `json:"connection"`
	// Held is what an engine keeps for a grant, and Journal what its journal entry
	// takes until it is trimmed, an hour after it was settled. Row is what a grant
	// takes in the ledger.
	Held    map[string]float64 `json:"held"`
	Journal map[string]float64 `json:"journal"`
	Row     float64            `json:"row"`
}

//go:embed default.json
var defaultText []byte

// Default returns the calibration that is embedded in the program. Its figures are
// of the project's own machine, not of yours.
func Default() *Calibration {
	c, err := Read(bytes.NewReader(defaultText), time.Time{})
	if err != nil {
		// A test reads the file: a program that was built has a good one.
		panic(err)
	}
	c.Source = embedded
	return c
}

// embedded is the source of Default.
const embedded = "embedded"

// ErrCalibration says that a calibration cannot be used; the error that wraps it
// says why.
var ErrCalibration = errors.New("take a new one with dibs plan --measure")

// Read reads a calibration and judges it at a time; the zero time judges no age.
// It returns ErrCalibration when the calibration is of another format, lacks a
// cost, or is too old.
func Read(r io.Reader, now time.Time) (*Calibration, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	c := new(Calibration)
	if err := dec.Decode(c); err != nil {
		return nil, fmt.Errorf("the calibration cannot be read (%w): %w", err, ErrCalibration)
	}
	if c.Format != Format {
		return nil, fmt.Errorf("the calibration has format %d, and this version reads %d: %w", c.Format, Format, ErrCalibration)
	}
	if err := c.whole(); err != nil {
		return nil, err
	}
	age := now.Sub(c.MeasuredAt)
	switch {
	case now.IsZero():
	case age < -24*time.Hour:
		return nil, fmt.Errorf("the calibration is of %s, which has not come yet: %w", c.MeasuredAt.Format(time.DateOnly), ErrCalibration)
	case age > stale:
		return nil, fmt.Errorf("the calibration is of %s, more than a year ago: %w", c.MeasuredAt.Format(time.DateOnly), ErrCalibration)
	}
	return c, nil
}

// whole returns an error when a cost is missing or cannot be. A cost of zero would
// make a deployment look free.
func (c *Calibration) whole() error {
	costs := map[string]float64{
		"client.request_us": c.Client.RequestUS, "client.first_us": c.Client.FirstUS, "node.first_us": c.Node.FirstUS, "node.granted_us": c.Node.GrantedUS, "node.refused_us": c.Node.RefusedUS,
		"sizes.request": c.Sizes.Request, "sizes.answer": c.Sizes.Answer, "sizes.connection": c.Sizes.Connection, "sizes.row": c.Sizes.Row,
	}
	for name, e := range c.Engines {
		if e == nil {
			return fmt.Errorf("the calibration has no costs of the engine %s: %w", name, ErrCalibration)
		}
		costs[name+".step_us"], costs[name+".claim_us"], costs[name+".sync_us"], costs[name+".read_us"] = e.StepUS, e.ClaimUS, e.SyncUS, e.ReadUS
		costs["sizes.held."+name], costs["sizes.journal."+name] = c.Sizes.Held[name], c.Sizes.Journal[name]
	}
	for name, l := range c.Ledgers {
		if l == nil {
			return fmt.Errorf("the calibration has no costs of the ledger %s: %w", name, ErrCalibration)
		}
		costs[name+".commit_us"], costs[name+".row_us"], costs[name+".node_us"] = l.CommitUS, l.RowUS, l.NodeUS
	}
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		if v := costs[name]; !(v > 0 && v < 1e9) {
			return fmt.Errorf("the calibration has %g for %s: %w", v, name, ErrCalibration)
		}
	}
	return nil
}

// Write writes the calibration as JSON, which Read reads.
func (c *Calibration) Write(w io.Writer) error {
	kept := *c
	kept.Source = ""
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(&kept)
}

// costs returns what a question's engine and ledger cost.
func (c *Calibration) costs(q *Question) (*EngineCost, *LedgerCost, error) {
	e, l := c.Engines[q.Engine], c.Ledgers[q.Ledger]
	switch {
	case e == nil:
		return nil, nil, fmt.Errorf("the calibration was taken without the engine %s: %w", q.Engine, ErrCalibration)
	case l == nil:
		return nil, nil, fmt.Errorf("the calibration was taken without the ledger %s: %w", q.Ledger, ErrCalibration)
	}
	return e, l, nil
}
