package dibs

import (
	"context"
	"errors"
	"strings"
	"time"
)

// problemType is the prefix of problem types; the word of the reason follows.
const problemType = "urn:dibs:problem:"

var (
	isPaused  = Text{"the campaign is paused and may go on later", "活动已暂停，稍后可能继续"}
	isOver    = Text{"the campaign is over", "活动已经结束"}
	isSold    = Text{"nothing is left", "已全部领完"}
	isTooMany = Textf("one user may make at most %d claims in a campaign, cancelled ones included",
		"每位用户在一个活动中最多可领取 %d 次（含已取消的）", MaxClaimsPerUser)
	isReused = Text{"this Idempotency-Key was used for a claim of another quantity", "该 Idempotency-Key 已用于不同数量的请求"}
)

// Explain is the sentence that tells people why they were refused; empty when
// the reason's title says it all.
func (r *Result) Explain() Text {
	if r.Detail.EN != "" {
		return r.Detail
	}
	switch r.Outcome {
	case NotFound:
		return noSuchCampaign.Detail
	case Paused:
		return isPaused
	case NotStarted:
		at := r.Campaign.StartsAt.UTC().Format(time.RFC3339)
		return Text{"the campaign starts at " + at, "活动将于 " + at + " 开始"}
	case Ended:
		return isOver
	case SoldOut:
		if r.Remaining > 0 {
			return Textf("only %d left, fewer than asked for", "仅剩 %d 件，不足所需数量", r.Remaining)
		}
		return isSold
	case LimitReached:
		return Textf("at most %d per user", "每人限领 %d 件", r.Campaign.LimitPerUser)
	case TooManyClaims:
		return isTooMany
	case KeyReused:
		return isReused
	}
	return Text{}
}

// problem is the part that is the registry's.
func (r Reason) problem(detail Text, zh bool) Problem {
	info := r.Info()
	if detail.EN == "" {
		detail = info.Title
	}
	return Problem{
		Type: problemType + info.Word, Title: info.Title.In(zh), Status: info.Status, Detail: detail.In(zh),
		Reason: info.Word, Code: info.Code, Retryable: info.Retryable,
	}
}

// Problem is a refusal as answered, without its request id.
func (r *Result) Problem(zh bool) Problem {
	p := r.Outcome.problem(r.Explain(), zh)
	c := r.Campaign
	switch r.Outcome {
	case NotStarted:
		p.StartsAt = &c.StartsAt
	case Ended:
		p.EndsAt = &c.EndsAt
	case SoldOut:
		p.Remaining = &r.Remaining
	case LimitReached:
		p.ClaimIDs = r.ClaimIDs
	case Waiting:
		if r.Place > 0 {
			p.Position = &r.Place
		}
	}
	if c != nil && c.Kind == RedPacket {
		p.ResultCode = ResultCode(r.Outcome)
	}
	return p
}

// ProblemOf is an error as answered, without its request id. What is not for
// callers becomes "internal" and shows nothing.
func ProblemOf(err error, zh bool) Problem {
	var e *Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The call was cut off somewhere on its way.
		e = Unavail(EffectUnknown, err)
	default:
		return Internal.problem(Text{"it was logged under this request_id", "已按该 request_id 记录"}, zh)
	}
	detail := e.Text()
	if e.Reason == Internal {
		detail = Text{}
	}
	p := e.Reason.problem(detail, zh)
	for _, f := range e.Faults {
		p.Errors = append(p.Errors, ProblemFault{Pointer: f.Field, Detail: f.Problem.In(zh)})
	}
	if len(p.Errors) > 0 && e.Detail.EN == "" {
		p.Detail = strings.TrimPrefix(p.Errors[0].Pointer+" "+p.Errors[0].Detail, "/")
	}
	if e.Reason == Unavailable || e.Reason == Overloaded {
		// An error that does not say what it did may have done anything.
		if p.Effect = e.Effect; p.Effect == "" {
			p.Effect = EffectUnknown
		}
	}
	return p
}
