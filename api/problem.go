package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// Problem is a refusal or an error as answered: RFC 9457 with dibs' fields.
type Problem struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Reason    string         `json:"reason"`
	Code      int            `json:"code"`
	Retryable bool           `json:"retryable"`
	RequestID string         `json:"request_id"`
	Errors    []ProblemFault `json:"errors,omitempty"`
	Effect    dibs.Effect    `json:"effect,omitempty"`
	// The rest belongs to single reasons: not_started, ended, sold_out,
	// limit_reached, waiting.
	StartsAt  *time.Time `json:"starts_at,omitempty"`
	EndsAt    *time.Time `json:"ends_at,omitempty"`
	Remaining *int64     `json:"remaining,omitempty"`
	ClaimIDs  []string   `json:"claim_ids,omitempty"`
	Position  *int64     `json:"position,omitempty"`
	// ResultCode belongs to red packets: "1" for limit_reached, "-1" for sold_out.
	ResultCode string `json:"result_code,omitempty"`
}

// ProblemFault is one thing wrong with an input.
type ProblemFault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// problemType is the prefix of problem types; the word of the reason follows.
const problemType = "urn:dibs:problem:"

// problemOfReason is the part that is the registry's.
func problemOfReason(r dibs.Reason, detail dibs.Text, zh bool) Problem {
	info := r.Info()
	if detail.EN == "" {
		detail = info.Title
	}
	return Problem{
		Type: problemType + info.Word, Title: info.Title.In(zh), Status: info.Status, Detail: detail.In(zh),
		Reason: info.Word, Code: info.Code, Retryable: info.Retryable,
	}
}

// ProblemOfResult is a refusal as answered, without its request id.
func ProblemOfResult(r *dibs.Result, zh bool) Problem {
	p := problemOfReason(r.Outcome, r.Explain(), zh)
	c := r.Campaign
	switch r.Outcome {
	case dibs.NotStarted:
		p.StartsAt = &c.StartsAt
	case dibs.Ended:
		p.EndsAt = &c.EndsAt
	case dibs.SoldOut:
		p.Remaining = &r.Remaining
	case dibs.LimitReached:
		p.ClaimIDs = r.ClaimIDs
	case dibs.Waiting:
		if r.Place > 0 {
			p.Position = &r.Place
		}
	}
	if c != nil && c.Kind == dibs.RedPacket {
		p.ResultCode = dibs.ResultCode(r.Outcome)
	}
	return p
}

// ProblemOf is an error as answered, without its request id. An error that is not for
// callers becomes "internal" and shows nothing.
func ProblemOf(err error, zh bool) Problem {
	var e *dibs.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The call was cut off somewhere on its way.
		e = dibs.Unavail(dibs.EffectUnknown, err)
	default:
		return problemOfReason(dibs.Internal, dibs.Text{EN: "it was logged under this request_id", ZH: "已按该 request_id 记录"}, zh)
	}
	detail := e.Text()
	if e.Reason == dibs.Internal {
		detail = dibs.Text{}
	}
	p := problemOfReason(e.Reason, detail, zh)
	for _, f := range e.Faults {
		p.Errors = append(p.Errors, ProblemFault{Pointer: f.Field, Detail: f.Problem.In(zh)})
	}
	if len(p.Errors) > 0 && e.Detail.EN == "" {
		p.Detail = strings.TrimPrefix(p.Errors[0].Pointer+" "+p.Errors[0].Detail, "/")
	}
	if e.Reason == dibs.Unavailable || e.Reason == dibs.Overloaded {
		// An error that does not say what it did may have done anything.
		if p.Effect = e.Effect; p.Effect == "" {
			p.Effect = dibs.EffectUnknown
		}
	}
	return p
}
