package web

import (
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// heads are the first members of the documents, which depend on reason and
// language only: heads[reason][0] in English, [1] in Chinese.
var heads = func() (h [dibs.ReasonCount][2][]byte) {
	for i := range dibs.ReasonCount {
		info := dibs.Reason(i).Info()
		for j, zh := range []bool{false, true} {
			b := append([]byte(nil), `{"type":`...)
			b = AppendString(b, problemType+info.Word)
			b = AppendString(append(b, `,"title":`...), info.Title.In(zh))
			b = AppendString(append(b, `,"reason":`...), info.Word)
			b = strconv.AppendInt(append(b, `,"code":`...), int64(info.Code), 10)
			b = strconv.AppendBool(append(b, `,"retryable":`...), info.Retryable)
			h[i][j] = append(b, `,"status":`...)
		}
	}
	return h
}()

// Append appends the problem document, as api.Problem describes it, to b. It does
// not allocate where b has room.
func (p *Problem) Append(b []byte, zh bool, requestID string) []byte {
	r := p.Reason
	if int(r) >= dibs.ReasonCount {
		r = dibs.Internal
	}
	head := &heads[r][0]
	if zh {
		head = &heads[r][1]
	}
	b = strconv.AppendInt(append(b, *head...), int64(p.StatusCode()), 10)
	b = AppendString(append(b, `,"detail":`...), p.Text().In(zh))
	b = AppendString(append(b, `,"request_id":`...), requestID)
	if p.Effect != "" {
		b = AppendString(append(b, `,"effect":`...), string(p.Effect))
	}
	if len(p.Faults) > 0 {
		b = appendFaults(append(b, `,"errors":`...), p.Faults, zh)
	}
	switch r {
	case dibs.NotStarted:
		b = AppendTime(append(b, `,"starts_at":`...), p.StartsAt)
	case dibs.Ended:
		b = AppendTime(append(b, `,"ends_at":`...), p.EndsAt)
	case dibs.SoldOut:
		b = strconv.AppendInt(append(b, `,"remaining":`...), p.Remaining, 10)
	case dibs.Waiting:
		if p.Position > 0 {
			b = strconv.AppendInt(append(b, `,"position":`...), p.Position, 10)
		}
	case dibs.LimitReached:
		b = AppendStrings(append(b, `,"claim_ids":`...), p.ClaimIDs)
	}
	if p.ResultCode != "" {
		b = AppendString(append(b, `,"result_code":`...), p.ResultCode)
	}
	return append(b, '}')
}

func appendFaults(b []byte, fs []dibs.Fault, zh bool) []byte {
	b = append(b, '[')
	for i := range fs {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, `{"pointer":`...), fs[i].Field)
		b = AppendString(append(b, `,"detail":`...), fs[i].Problem.In(zh))
		b = append(b, '}')
	}
	return append(b, ']')
}

// View returns the problem document as a value, for messages that it is a part of.
// It says the same as Append, but leaves an empty list of claims out.
func (p *Problem) View(zh bool, requestID string) api.Problem {
	info := p.Reason.Info()
	v := api.Problem{
		Type: problemType + info.Word, Title: info.Title.In(zh), Status: p.StatusCode(), Detail: p.Text().In(zh), Reason: info.Word,
		Code: info.Code, Retryable: info.Retryable, RequestID: requestID, Effect: p.Effect, ResultCode: p.ResultCode,
	}
	for _, f := range p.Faults {
		v.Errors = append(v.Errors, api.ProblemFault{Pointer: f.Field, Detail: f.Problem.In(zh)})
	}
	utc := func(t time.Time) *time.Time { t = t.UTC(); return &t }
	switch p.Reason {
	case dibs.NotStarted:
		v.StartsAt = utc(p.StartsAt)
	case dibs.Ended:
		v.EndsAt = utc(p.EndsAt)
	case dibs.SoldOut:
		v.Remaining = &p.Remaining
	case dibs.LimitReached:
		v.ClaimIDs = p.ClaimIDs
	case dibs.Waiting:
		if p.Position > 0 {
			v.Position = &p.Position
		}
	}
	return v
}
