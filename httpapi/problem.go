package httpapi

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

// problem is a refusal or an error on its way out.
type problem struct {
	reason dibs.Reason
	// status is the reason's own when 0.
	status     int
	detail     dibs.Text
	faults     []dibs.Fault
	effect     dibs.Effect
	retryAfter time.Duration

	startsAt, endsAt time.Time
	// remaining is shown with SoldOut, claimIDs with LimitReached.
	remaining int64
	claimIDs  []string
	// place is shown with Waiting.
	place int64
	// resultCode is a red packet's.
	resultCode string
}

func (p *problem) statusCode() int {
	if p.status != 0 {
		return p.status
	}
	return p.reason.Info().Status
}

// problemOf turns any error into what is shown of it. Errors that are not for
// callers become "internal" and show nothing.
func problemOf(err error) problem {
	var e *dibs.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The call was cut off somewhere on its way.
		e = dibs.Unavail(dibs.EffectUnknown, err)
	default:
		return problem{reason: dibs.Internal, detail: dibs.Text{EN: "it was logged under this request_id", ZH: "已按该 request_id 记录"}}
	}
	p := problem{reason: e.Reason, detail: e.Text(), faults: e.Faults, retryAfter: e.RetryAfter}
	if len(e.Faults) > 0 && e.Detail.EN == "" {
		p.detail = faultsDetail(e.Faults)
	}
	if p.reason.Info().Status == http.StatusServiceUnavailable {
		// An error that does not say what it did may have done anything.
		if p.effect = e.Effect; p.effect == "" {
			p.effect = dibs.EffectUnknown
		}
	}
	if p.reason == dibs.Internal {
		p.detail = dibs.Text{}
	}
	return p
}

// faultsDetail says in one sentence what the list of faults says in full.
func faultsDetail(fs []dibs.Fault) dibs.Text {
	field, sep := fs[0].Field, " "
	if field != "" {
		field = field[1:]
	} else {
		field, sep = "", ""
	}
	t := dibs.Text{EN: field + sep + fs[0].Problem.EN, ZH: field + sep + fs[0].Problem.In(true)}
	if n := len(fs) - 1; n > 0 {
		more := dibs.Textf("; and %d more", ";另有 %d 处", n)
		t.EN, t.ZH = t.EN+more.EN, t.ZH+more.ZH
	}
	return t
}

// heads are the members that depend on reason and language only.
var heads = func() (h [dibs.ReasonCount][2][]byte) {
	for i := range dibs.ReasonCount {
		info := dibs.Reason(i).Info()
		for j, zh := range []bool{false, true} {
			b := append([]byte(nil), `{"type":`...)
			b = appendString(b, problemType+info.Word)
			b = appendString(append(b, `,"title":`...), info.Title.In(zh))
			b = appendString(append(b, `,"reason":`...), info.Word)
			b = strconv.AppendInt(append(b, `,"code":`...), int64(info.Code), 10)
			b = strconv.AppendBool(append(b, `,"retryable":`...), info.Retryable)
			h[i][j] = append(b, `,"status":`...)
		}
	}
	return h
}()

func langIndex(zh bool) int {
	if zh {
		return 1
	}
	return 0
}

// appendProblem appends the problem document.
func appendProblem(b []byte, p *problem, zh bool, requestID string) []byte {
	r := p.reason
	if int(r) >= dibs.ReasonCount {
		r = dibs.Internal
	}
	b = append(b, heads[r][langIndex(zh)]...)
	b = strconv.AppendInt(b, int64(p.statusCode()), 10)
	detail := p.detail
	if detail.EN == "" {
		detail = r.Info().Title
	}
	b = appendString(append(b, `,"detail":`...), detail.In(zh))
	b = appendString(append(b, `,"request_id":`...), requestID)
	if p.effect != "" {
		b = appendString(append(b, `,"effect":`...), string(p.effect))
	}
	if len(p.faults) > 0 {
		b = appendFaults(append(b, `,"errors":`...), p.faults, zh)
	}
	switch r {
	case dibs.NotStarted:
		b = appendTime(append(b, `,"starts_at":`...), p.startsAt)
	case dibs.Ended:
		b = appendTime(append(b, `,"ends_at":`...), p.endsAt)
	case dibs.SoldOut:
		b = strconv.AppendInt(append(b, `,"remaining":`...), p.remaining, 10)
	case dibs.Waiting:
		if p.place > 0 {
			b = strconv.AppendInt(append(b, `,"position":`...), p.place, 10)
		}
	case dibs.LimitReached:
		b = appendStrings(append(b, `,"claim_ids":`...), p.claimIDs)
	}
	if p.resultCode != "" {
		b = appendString(append(b, `,"result_code":`...), p.resultCode)
	}
	return append(b, '}')
}

func appendFaults(b []byte, fs []dibs.Fault, zh bool) []byte {
	b = append(b, '[')
	for i := range fs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"pointer":`...), fs[i].Field)
		b = appendString(append(b, `,"detail":`...), fs[i].Problem.In(zh))
		b = append(b, '}')
	}
	return append(b, ']')
}

// The values of headers are shared: net/http only reads them.
var (
	typeProblem = []string{"application/problem+json"}
	typeJSON    = []string{"application/json"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	askBearer   = []string{"Bearer"}
)

// setProblemHeaders sets what goes with a problem document.
func setProblemHeaders(h http.Header, p *problem) {
	h["Content-Type"] = typeProblem
	h["Cache-Control"] = noStore
	switch status := p.statusCode(); {
	case status == http.StatusUnauthorized:
		h["Www-Authenticate"] = askBearer
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, p.reason == dibs.Waiting:
		seconds := max(1, int64((p.retryAfter+time.Second-1)/time.Second))
		h["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	}
}

// The headers that tell of limits, by the IETF's draft on them, as net/http
// writes their names.
const (
	headerLimit       = "Ratelimit"
	headerLimitPolicy = "Ratelimit-Policy"
)

// setQuota tells how much of a limit is left.
func setQuota(h http.Header, q *dibs.Quota) {
	if q.Name == "" {
		return
	}
	b := make([]byte, 0, 96)
	b = append(append(append(b, '"'), q.Name...), `";q=`...)
	b = strconv.AppendInt(b, q.Limit, 10)
	b = strconv.AppendInt(append(b, ";w="...), wholeSeconds(q.Window), 10)
	policy := len(b)
	b = append(append(append(b, '"'), q.Name...), `";r=`...)
	b = strconv.AppendInt(b, q.Remaining, 10)
	b = strconv.AppendInt(append(b, ";t="...), wholeSeconds(q.Reset), 10)
	text := string(b)
	both := [2]string{text[:policy], text[policy:]}
	h[headerLimitPolicy], h[headerLimit] = both[0:1:1], both[1:2:2]
}

// wholeSeconds rounds up: who waits so long has waited long enough.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
