package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
)

// problemType is the prefix of problem types; the word of the reason follows.
const problemType = "urn:dibs:problem:"

// Problem is a refusal or an error that is about to be answered. It is an error
// itself, for routes that know better than an error how to answer. The zero value
// of a member leaves it out, or means what the reason's entry in the registry says.
type Problem struct {
	Reason dibs.Reason
	// Status replaces the reason's HTTP status unless it is 0.
	Status int
	// Detail is this case's sentence; the reason's title when empty.
	Detail dibs.Text
	Faults []dibs.Fault
	Effect dibs.Effect
	// RetryAfter is shown with statuses 429 and 503 and with Waiting: a second at
	// least.
	RetryAfter time.Duration

	// StartsAt is shown with NotStarted, EndsAt with Ended.
	StartsAt, EndsAt time.Time
	// Remaining is shown with SoldOut, ClaimIDs with LimitReached.
	Remaining int64
	ClaimIDs  []string
	// Position is shown with Waiting, unless it is 0.
	Position int64
	// ResultCode is a red packet's.
	ResultCode string
}

// Error returns the reason and the sentence, for logs.
func (p Problem) Error() string { return p.Reason.String() + ": " + p.Detail.EN }

// StatusCode returns the HTTP status.
func (p *Problem) StatusCode() int {
	if p.Status != 0 {
		return p.Status
	}
	return p.Reason.Info().Status
}

// Text returns the sentence for people: the detail, or the reason's title.
func (p *Problem) Text() dibs.Text {
	if p.Detail.EN != "" {
		return p.Detail
	}
	return p.Reason.Info().Title
}

var logged = dibs.Text{EN: "it was logged under this request_id", ZH: "已按该 request_id 记录"}

// ProblemOf returns what callers see of an error. An error that is not for callers
// becomes "internal" and shows nothing.
func ProblemOf(err error) Problem {
	var p Problem
	if errors.As(err, &p) {
		return p
	}
	var e *dibs.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The call ended before its answer came.
		e = dibs.Unavail(dibs.EffectUnknown, err)
	default:
		return Problem{Reason: dibs.Internal, Detail: logged}
	}
	p = Problem{Reason: e.Reason, Detail: e.Text(), Faults: e.Faults, RetryAfter: e.RetryAfter}
	if len(e.Faults) > 0 && e.Detail.EN == "" {
		p.Detail = summary(e.Faults)
	}
	if p.Reason.Info().Status == http.StatusServiceUnavailable {
		// An error that does not say what it did may have done anything.
		if p.Effect = e.Effect; p.Effect == "" {
			p.Effect = dibs.EffectUnknown
		}
	}
	if p.Reason == dibs.Internal {
		p.Detail = dibs.Text{}
	}
	return p
}

// summary says in one sentence what a list of faults says in full.
func summary(fs []dibs.Fault) dibs.Text {
	name := ""
	if fs[0].Field != "" {
		name = fs[0].Field[1:] + " "
	}
	t := dibs.Text{EN: name + fs[0].Problem.EN, ZH: name + fs[0].Problem.In(true)}
	if n := len(fs) - 1; n > 0 {
		more := dibs.Textf("; and %d more", "；另有 %d 处", n)
		t.EN, t.ZH = t.EN+more.EN, t.ZH+more.ZH
	}
	return t
}

// RefusalOf returns the problem of a claim that was refused, with the facts that
// its reason shows.
func RefusalOf(res *dibs.Result) Problem {
	p := Problem{
		Reason: res.Outcome, Detail: res.Explain(), RetryAfter: res.RetryAfter,
		Remaining: res.Remaining, ClaimIDs: res.ClaimIDs, Position: res.Place,
	}
	if p.StatusCode() == http.StatusServiceUnavailable {
		// A gate that cannot decide yet has not let the claim through.
		p.Effect = dibs.EffectNone
	}
	c := res.Campaign
	if c != nil && c.Kind == dibs.RedPacket {
		p.ResultCode = dibs.ResultCode(res.Outcome)
	}
	switch res.Outcome {
	case dibs.NotStarted:
		p.StartsAt = c.StartsAt
	case dibs.Ended:
		p.EndsAt = c.EndsAt
	}
	return p
}

// SetHeaders sets the headers that go with a problem document.
func (p *Problem) SetHeaders(h http.Header) {
	h["Content-Type"], h[headerDisposition] = TypeProblem, asFile
	h["Cache-Control"] = NoStore
	switch status := p.StatusCode(); {
	case status == http.StatusUnauthorized:
		h["Www-Authenticate"] = askBearer
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, p.Reason == dibs.Waiting:
		h["Retry-After"] = []string{strconv.FormatInt(max(1, wholeSeconds(p.RetryAfter)), 10)}
	}
}

// wholeSeconds rounds a wait up, so that a caller who waits for it has waited long
// enough.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
