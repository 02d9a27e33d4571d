package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// claimPattern is the route that everybody calls at the same second.
const claimPattern = "POST /v1/campaigns/{id}/claims"

var errBadKey = dibs.Invalid(dibs.Fault{
	Field:   "/" + headerKey,
	Problem: dibs.Text{EN: "must be one header of 1-255 visible ASCII characters", ZH: "必须是单个请求头，1-255 个可见 ASCII 字符"},
})

// idempotencyKey returns the request's key, "" when there is none.
func idempotencyKey(h http.Header) (string, error) {
	v, given := h[headerKey]
	if !given {
		return "", nil
	}
	if len(v) != 1 || !isVisible(v[0], dibs.MaxKeyLen) {
		return "", errBadKey
	}
	return v[0], nil
}

// headerDevice is what a client calls itself.
const headerDevice = "Dibs-Device"

// first is the only value of a header; "" for none, or more than one.
func first(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// claimHandler answers claims. It does by hand what the other routes leave to
// huma, because this is the path that decides how many people one core can
// answer.
type claimHandler struct {
	*api
	shape shape
}

// scratch is the memory of one claim request, used again.
type scratch struct {
	in, out []byte
}

// keptScratch is the most a scratch may have grown to and still be kept.
const keptScratch = 8 << 10

var scratches = sync.Pool{New: func() any {
	return &scratch{in: make([]byte, 0, 512), out: make([]byte, 0, 1024)}
}}

func (h *claimHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	s := scratches.Get().(*scratch)
	id := h.ids.of(r.Header)
	header := w.Header()
	header[headerRequestID] = []string{id}
	header["X-Content-Type-Options"] = noSniff
	defer func() {
		if fault := recover(); fault != nil {
			h.panicked(w, r, fault, id)
			h.metrics.claims.count(dibs.Internal, start)
		}
	}()

	in, end := r, nobodyTraces
	if h.cfg.TraceClaims && h.cfg.Tracer != nil {
		in, end = h.traceClaim(r, id)
	}
	res, err := h.claim(w, in, s)
	end(err)
	outcome := res.Outcome
	if err == nil && outcome == dibs.Granted {
		h.granted(w, &res, s)
	} else {
		p := h.refusal(in, &res, err, id)
		outcome = p.reason
		setProblemHeaders(header, &p)
		if outcome == dibs.RateLimited {
			setQuota(header, &res.Quota)
		}
		s.out = appendProblem(s.out[:0], &p, h.lang.chinese(r.Header), id)
		w.WriteHeader(p.statusCode())
		h.write(w, s.out)
	}
	if cap(s.in) <= keptScratch && cap(s.out) <= keptScratch {
		scratches.Put(s)
	}
	if res.Replayed {
		h.metrics.claims.countReplay(start)
	} else {
		h.metrics.claims.count(outcome, start)
	}
}

// claim reads the request and asks the service.
func (h *claimHandler) claim(w http.ResponseWriter, r *http.Request, s *scratch) (dibs.Result, error) {
	if h.cfg.Overload != nil && h.cfg.Overload.Full() {
		// What cannot be answered in time costs as little as can be.
		h.cfg.Overload.Refused()
		return dibs.Result{}, dibs.Shed(len(r.Header[headerKey]) > 0)
	}
	who, err := h.admitClaimant(r.Header)
	if err != nil {
		return dibs.Result{}, err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return dibs.Result{}, err
	}
	if err := h.read(w, r, s); err != nil {
		return dibs.Result{}, err
	}
	quantity, err := decodeClaim(h.shape, s.in)
	if err != nil {
		return dibs.Result{}, err
	}
	req := dibs.ClaimRequest{
		CampaignID: r.PathValue("id"), UserID: who.user, Quantity: quantity, Key: key,
		Address: h.proxies.client(r), Device: first(r.Header[headerDevice]),
		Ticket: single(r.Header, headerTicket), Admission: single(r.Header, headerAdmission),
	}
	if h.cfg.Limits != nil {
		res, ok := h.cfg.Limits.Enter(r.Context(), &req)
		setQuota(w.Header(), &res.Quota)
		if !ok {
			return res, nil
		}
	}
	return h.svc.Claim(r.Context(), req)
}

// read reads the body into s.in.
func (h *claimHandler) read(w http.ResponseWriter, r *http.Request, s *scratch) error {
	s.in = s.in[:0]
	if r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength < 0 || r.ContentLength > int64(cap(s.in)) {
		// A long body, or one of unknown length: rare, and bounded by the reader.
		raw, err := readBody(w, r, h.cfg.MaxBody)
		s.in = append(s.in, raw...)
		return err
	}
	if !isJSON(r.Header) && r.ContentLength > 0 {
		return errWrongType
	}
	s.in = s.in[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, s.in); err != nil {
		return errCutOff
	}
	return nil
}

// granted answers a yes: 201 the first time, 200 when it is repeated.
func (h *claimHandler) granted(w http.ResponseWriter, res *dibs.Result, s *scratch) {
	header := w.Header()
	header["Content-Type"] = typeJSON
	header["Cache-Control"] = noStore
	status := http.StatusCreated
	if res.Replayed {
		status = http.StatusOK
		header[headerReplayed] = isTrue
	} else {
		header["Location"] = []string{"/v1/claims/" + res.Claim.ID}
	}
	s.out = s.out[:0]
	if len(res.Claim.Events) == 0 {
		s.out = appendClaim(s.out, res.Claim)
	} else if body, err := encodeJSON(res.Claim.View()); err == nil {
		// A repeat of a claim that has moved on is rare.
		s.out = append(s.out, body...)
	}
	w.WriteHeader(status)
	h.write(w, s.out)
}

var isTrue = []string{"true"}

// refusal turns a no, or an error, into the problem that tells it.
func (h *claimHandler) refusal(r *http.Request, res *dibs.Result, err error, requestID string) problem {
	if err != nil {
		var p problem
		if errors.As(err, &p) {
			return p
		}
		p = problemOf(err)
		h.logFailure(r, &p, err, requestID)
		return p
	}
	return refusalOf(res)
}

// refusalOf tells a refusal with its facts.
func refusalOf(res *dibs.Result) problem {
	p := problem{reason: res.Outcome, remaining: res.Remaining, claimIDs: res.ClaimIDs, place: res.Place, retryAfter: res.RetryAfter, detail: res.Explain()}
	if p.statusCode() == http.StatusServiceUnavailable {
		// A gate that does not know yet has let nothing through.
		p.effect = dibs.EffectNone
	}
	c := res.Campaign
	if c != nil && c.Kind == dibs.RedPacket {
		p.resultCode = dibs.ResultCode(res.Outcome)
	}
	switch res.Outcome {
	case dibs.NotStarted:
		p.startsAt = c.StartsAt
	case dibs.Ended:
		p.endsAt = c.EndsAt
	}
	return p
}
