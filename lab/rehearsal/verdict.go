package rehearsal

import (
	"fmt"
	"strings"
)

// Judgement is how a promise came out.
type Judgement string

// The judgements.
const (
	Held   Judgement = "held"
	Broken Judgement = "broken"
	// Unjudged: there was nothing to judge by, or it could not be gathered, since the
	// server would not answer. A rehearsal with such a promise has not passed, and
	// has found nothing wrong with it either.
	Unjudged Judgement = "could not be judged"
)

// Verdict is the judgement of one promise.
type Verdict struct {
	Promise   string    `json:"promise"`
	Judgement Judgement `json:"finding"`
	// Witness is `answers` when it rests on what clients were told, and
	// `server` when it is the server's own comparison of engine and ledger.
	Witness string `json:"witness"`
	// Detail says what was compared, or what is broken.
	Detail string `json:"detail"`
}

// The witnesses.
const (
	byAnswers = "answers"
	byServer  = "server"
)

// The promises that are judged by answers, in the words of those that a
// server's own report has.
const (
	noOversell    = "no oversell"
	limitHolds    = "the limit holds"
	yesIsKept     = "a yes is kept"
	noPhantom     = "no phantom"
	noUndersell   = "no undersell"
	repeatsAgree  = "a repeat returns the first result"
	allAnswered   = "every press is answered"
	numbersAgree  = "the numbers agree"
	moneyAddsUp   = "the money adds up"
	serverVerdict = "engine and ledger agree"
)

// judge returns the finding of a promise that faults break.
func judge(promise string, faults []string, format string, args ...any) Verdict {
	v := Verdict{Promise: promise, Judgement: Held, Witness: byAnswers, Detail: fmt.Sprintf(format, args...)}
	if len(faults) > 0 {
		v.Judgement = Broken
		v.Detail += ": " + some(faults)
	}
	return v
}

// unjudged is a promise that could not be judged.
func unjudged(promise, witness, format string, args ...any) Verdict {
	return Verdict{Promise: promise, Judgement: Unjudged, Witness: witness, Detail: fmt.Sprintf(format, args...)}
}

// mostNamed bounds the faults that a verdict spells out.
const mostNamed = 3

func some(faults []string) string {
	if more := len(faults) - mostNamed; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(faults[:mostNamed], "; "), more)
	}
	return strings.Join(faults, "; ")
}
