package enginetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

var randomChecks = []Check{
	{"random/operations agree with the model", checkRandom},
}

// op is one random operation. Its arguments a and b are random numbers that each
// operation reads in its own way; they mean something whatever was left out before it,
// so that a failing run can be made shorter.
type op struct {
	name string
	a, b uint32
}

// String shows the operation as the trace of a failure lists it.
func (x op) String() string { return fmt.Sprintf("%s(%d,%d)", x.name, x.a, x.b) }

// opWeights says how often each operation is drawn.
var opWeights = []struct {
	name   string
	weight int
}{
	{"claim", 50},
	{"release", 12},
	{"repeatRelease", 3},
	{"unknownRelease", 1},
	{"staleRelease", 1},
	{"restock", 5},
	{"repeatRestock", 2},
	{"staleRestock", 1},
	{"withdraw", 5},
	{"repeatWithdraw", 4},
	{"pause", 2},
	{"resume", 5},
	{"window", 2},
	{"limit", 1},
	{"older", 1},
	{"clock", 5},
	{"find", 5},
	{"holdings", 3},
	{"settle", 4},
	{"trim", 1},
	{"restart", 3},
}

// drawOps makes a run of operations from a seed. The same seed and number of steps
// give the same run.
func drawOps(seed uint64, steps int) []op {
	rng := rand.New(rand.NewPCG(seed, 0))
	total := 0
	for _, w := range opWeights {
		total += w.weight
	}
	// The first operation only says what the run is about.
	ops := []op{{name: "begin", a: rng.Uint32(), b: rng.Uint32()}}
	for range steps {
		n := rng.IntN(total)
		for _, w := range opWeights {
			if n -= w.weight; n < 0 {
				ops = append(ops, op{name: w.name, a: rng.Uint32(), b: rng.Uint32()})
				break
			}
		}
	}
	return ops
}

// envInt reads a number from the environment.
func envInt(r *rig, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	r.no(err, "read %s", name)
	return n
}

// checkRandom plays runs of random operations against the model. The other checks hold
// one rule each; this one finds rules that break only in combination, such as a repeat
// of a released claim after a restart with a part of the tail settled. A run that
// fails is made shorter and reported with its seed.
func checkRandom(r *rig) {
	runs := envInt(r, "ENGINETEST_RUNS", r.fewer(8))
	steps := envInt(r, "ENGINETEST_STEPS", 250)
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ENGINETEST_SEED"); s != "" {
		given, err := strconv.ParseUint(s, 10, 64)
		r.no(err, "read ENGINETEST_SEED")
		seed, runs = given, 1
	}
	for i := range uint64(runs) {
		r.tb.Logf("random operations: ENGINETEST_SEED=%d ENGINETEST_STEPS=%d", seed+i, steps)
		ops := drawOps(seed+i, steps)
		if err := play(r, ops); err != nil {
			ops, err = shorten(r, ops, err)
			r.fatalf("ENGINETEST_SEED=%d ENGINETEST_STEPS=%d, made shorter to %d operations (%s): %w", seed+i, steps, len(ops), trace(ops), err)
		}
	}
}

// trace shows the last 40 operations of a run, which are those that matter most.
func trace(ops []op) string {
	var b strings.Builder
	from := max(0, len(ops)-40)
	if from > 0 {
		fmt.Fprintf(&b, "… %d before, ", from)
	}
	for i, x := range ops[from:] {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(x.String())
	}
	return b.String()
}

// play runs operations on a fresh engine, beside a fresh model, and returns what
// differed.
func play(r *rig, ops []op) error {
	c := Check{Name: "play", check: func(fresh *rig) { newPlayer(fresh, ops[0]).run(ops[1:]) }}
	return c.Run(r.tb, r.factory)
}

// shortenBudget bounds the runs spent on making a failure shorter.
const shortenBudget = 150

// shorten leaves operations out, in ever smaller pieces, as long as the run still
// fails. The result is the shortest run that was found and its failure, which may be
// another one than the first.
func shorten(r *rig, ops []op, err error) ([]op, error) {
	budget := shortenBudget
	for size := len(ops) / 2; size >= 1; size /= 2 {
		// From the end: what follows the failure goes first.
		for at := len(ops) - size; at >= 1 && budget > 0; at -= size {
			budget--
			fewer := slices.Delete(slices.Clone(ops), at, min(at+size, len(ops)))
			if e := play(r, fewer); e != nil {
				ops, err = fewer, e
			}
		}
	}
	return ops, err
}
