package rehearsal

import (
	"fmt"
	"strings"

	"github.com/dibs-dev/dibs"
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
	// DetailZH is Detail in Chinese; empty where the server was not asked for it.
	DetailZH string `json:"-"`
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
func judge(promise string, faults []dibs.Text, detail dibs.Text) Verdict {
	v := Verdict{Promise: promise, Judgement: Held, Witness: byAnswers, Detail: detail.EN, DetailZH: detail.ZH}
	if len(faults) > 0 {
		v.Judgement = Broken
		named := some(faults)
		v.Detail, v.DetailZH = v.Detail+": "+named.EN, v.DetailZH+"："+named.ZH
	}
	return v
}

// unjudged is a promise that could not be judged.
func unjudged(promise, witness string, why dibs.Text) Verdict {
	return Verdict{Promise: promise, Judgement: Unjudged, Witness: witness, Detail: why.EN, DetailZH: why.ZH}
}

// because is an error as the reason for which a promise could not be judged.
func because(err error) dibs.Text {
	return dibs.Text{EN: err.Error(), ZH: "未能取得依据：" + err.Error()}
}

// mostNamed bounds the faults that a verdict spells out.
const mostNamed = 3

func some(faults []dibs.Text) dibs.Text {
	var en, zh []string
	for _, f := range faults[:min(len(faults), mostNamed)] {
		en, zh = append(en, f.EN), append(zh, f.In(true))
	}
	named := dibs.Text{EN: strings.Join(en, "; "), ZH: strings.Join(zh, "；")}
	if more := len(faults) - mostNamed; more > 0 {
		named.EN += fmt.Sprintf("; and %d more", more)
		named.ZH += fmt.Sprintf("；另有 %d 项", more)
	}
	return named
}
