package rehearsal

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// fate is what became of a press.
type fate uint8

const (
	// unsent: the rehearsal was stopped before.
	unsent fate = iota
	// yes: granted, at once or as a repeat.
	yes
	// no: stock or limit did not allow it.
	no
	// putOff: refused for a reason that says nothing about stock or limit.
	putOff
	// unexplained: answered as no valid request should be.
	unexplained
	// unanswered: nobody knows, after all attempts.
	unanswered
	// cutOff: the rehearsal was stopped while the press was under way, and nobody
	// knows either, but not by the server's doing.
	cutOff
)

// grant is a press that was granted, as it was answered.
type grant struct {
	press    press
	replayed bool
	claim    api.ClaimView
}

// tally counts answers while they come. Safe for concurrent use.
//
// mu guards the fields below it while the load runs; its goroutines have ended when the
// verdict reads them. The counts above it may be ahead of them or behind.
type tally struct {
	// The live counts.
	done, granted, refused, failed atomic.Int64
	// lost counts single attempts without an answer, saved those presses that
	// got one after such attempts.
	lost, saved atomic.Int64

	// misfits are granted claims that are not what was asked for. It guards itself.
	misfits collector

	mu       sync.Mutex
	outcomes map[string]int64
	latency  map[fate]*hdrhistogram.Histogram
	// fates are those of the plan's presses, by their index.
	fates  []fate
	grants []grant
	// lastError is an example of why attempts got no answer.
	lastError error
}

// The range of latencies, in microseconds, and their precision.
const (
	leastLatency   = 1
	mostLatency    = int64(time.Hour / time.Microsecond)
	latencyFigures = 3
)

func newTally(presses int) *tally {
	t := &tally{outcomes: map[string]int64{}, latency: map[fate]*hdrhistogram.Histogram{}, fates: make([]fate, presses)}
	for _, f := range []fate{yes, no, putOff, unexplained, unanswered} {
		t.latency[f] = hdrhistogram.New(leastLatency, mostLatency, latencyFigures)
	}
	return t
}

// fateOf judges an answer by its reason.
func fateOf(a *answer) fate {
	switch {
	case a.reason == granted:
		return yes
	case a.effect == dibs.EffectUnknown:
		return unanswered
	case deciding[a.reason]:
		return no
	case fair[a.reason]:
		return putOff
	}
	return unexplained
}

// repeated is the outcome of a press that was granted as a repeat.
const repeated = "granted (repeat)"

// noAnswer is the outcome of a press that got none.
const noAnswer = "no answer"

// record counts the end of press i, which took as long as took since it was
// meant to happen.
func (t *tally) record(i int, p press, a *answer, f fate, took time.Duration) error {
	outcome := a.reason
	switch {
	case f == yes && a.replayed:
		outcome = repeated
	case outcome == "":
		outcome = noAnswer
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(i, p, a, f)
	t.outcomes[outcome]++
	if err := t.latency[f].RecordValue(min(max(took.Microseconds(), leastLatency), mostLatency)); err != nil {
		return fmt.Errorf("recording a latency of %s: %w", took, err)
	}
	return nil
}

// settle notes what became of press i, which had got no answer before. It stays
// among the outcomes and latencies of the load as what it was there.
func (t *tally) settle(i int, p press, a *answer, f fate) {
	t.saved.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(i, p, a, f)
}

// keep notes the fate of press i, and what it was granted. mu is held.
func (t *tally) keep(i int, p press, a *answer, f fate) {
	t.fates[i] = f
	if f == yes {
		t.grants = append(t.grants, grant{press: p, replayed: a.replayed, claim: a.claim})
	}
}

// count moves the live counts.
func (t *tally) count(f fate) {
	t.done.Add(1)
	switch f {
	case yes:
		t.granted.Add(1)
	case no, putOff:
		t.refused.Add(1)
	default:
		t.failed.Add(1)
	}
}

// cut notes that press i was cut off by the end of the rehearsal.
func (t *tally) cut(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fates[i] = cutOff
}

// loseOne notes an attempt without an answer.
func (t *tally) loseOne(err error) {
	t.lost.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastError = err
}

// live is the line of counts shown while the load goes on.
func (t *tally) live() string {
	return fmt.Sprintf("granted %s, refused %s, failed %s", thousands(t.granted.Load()), thousands(t.refused.Load()), thousands(t.failed.Load()))
}
