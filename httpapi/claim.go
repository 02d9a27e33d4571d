package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
)

// claimPattern is the route that all users of a sale call within the same seconds.
const claimPattern = "POST /v1/campaigns/{id}/claims"

// The headers by which a claim carries what gates and limits ask for.
const (
	// headerDevice is how the client names its device.
	headerDevice    = "Dibs-Device"
	headerTicket    = "Dibs-Ticket"
	headerAdmission = "Dibs-Admission"
)

// Claimer decides claims.
// All claims call it concurrently.
type Claimer interface {
	// Claim returns the decision, which is final: Granted, or the refusal. An error
	// means that there is none, and says what may have happened all the same.
	Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error)
}

// Limits bound how often claims are made. All claims call it concurrently.
type Limits interface {
	// Enter reports true when the claim may go on; else the Result is its refusal.
	// It may wait for the claim's turn. The headers of the answer show the Result's
	// Quota.
	Enter(ctx context.Context, req *dibs.ClaimRequest) (dibs.Result, bool)
}

// Overload knows when more claims are under way than are answered in time, as
// overload.Guard does. All claims call it concurrently.
type Overload interface {
	// Full reports whether a claim would be refused; CountRefused counts one that was.
	Full() bool
	CountRefused()
	// View is how much there is to do.
	View() api.OverloadView
}

// claimHandler answers claims. The steps are in the order of their cost, and the
// handler does by hand what huma does for the other routes, because this path
// decides how many users one core can answer: it must not lock, and must not
// allocate beyond what TestClaimAllocations counts.
//
//	receive → shed → authenticate → read → limit → decide → answer
//
// It does not change while it serves, so requests share it without a lock. Every
// request owns one scratch from beginning to end.
type claimHandler struct {
	claimer Claimer
	auth    *authenticator
	proxies *web.Proxies
	// overload and limits may be nil.
	overload Overload
	limits   Limits
	body     web.Decoder
	maxBody  int64
	respond  *web.Responder
	times    *claimTimes
	// tracer is nil unless claims are traced.
	tracer Tracer
}

// scratch is the memory of one request, which later requests use again.
type scratch struct {
	in, out []byte
}

// keptScratch is the most that a buffer may have grown to and still be kept.
// One long body would otherwise stay in memory for good.
const keptScratch = 8 << 10

var scratches = sync.Pool{New: func() any {
	return &scratch{in: make([]byte, 0, 512), out: make([]byte, 0, 1024)}
}}

// ServeHTTP receives a claim and answers it.
func (h *claimHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	id := h.respond.Begin(w, r)
	// A panic is answered too. Its scratch is left to the garbage collector: what is in
	// it is not known.
	defer func() {
		if fault := recover(); fault != nil {
			h.respond.Recovered(w, r, id, fault, false)
			h.times.observe(dibs.Internal, start)
		}
	}()
	s := scratches.Get().(*scratch)

	traced, end := traceClaim(h.tracer, r, id)
	res, err := h.decide(w, traced, s)
	end(err)

	outcome := res.Outcome
	if err == nil && outcome == dibs.Granted {
		h.grant(w, &res, s)
	} else {
		outcome = h.refuse(w, traced, &res, err, id, s)
	}
	if cap(s.in) <= keptScratch && cap(s.out) <= keptScratch {
		scratches.Put(s)
	}
	if res.Replayed {
		h.times.observeReplay(start)
	} else {
		h.times.observe(outcome, start)
	}
}

// decide takes a claim from its arrival to the decision. A refusal is a result;
// an error means that the claim was not decided.
//
// An error before the last line means that this request did nothing; an earlier one with
// the same key may still have been granted. An error of the claimer has its own Effect.
func (h *claimHandler) decide(w http.ResponseWriter, r *http.Request, s *scratch) (dibs.Result, error) {
	if h.overload != nil && h.overload.Full() {
		// A claim that cannot be answered in time is refused before it costs anything.
		h.overload.CountRefused()
		// With a key it may be a repeat of a claim that was granted, so the effect is
		// unknown.
		return dibs.Result{}, dibs.Shed(len(r.Header[web.HeaderKey]) > 0)
	}
	from, err := h.auth.claimant(r.Header)
	if err != nil {
		return dibs.Result{}, err
	}
	key, err := web.IdempotencyKey(r.Header)
	if err != nil {
		return dibs.Result{}, err
	}
	if err := h.read(w, r, s); err != nil {
		return dibs.Result{}, err
	}
	quantity, reference, err := decodeClaim(h.body, s.in)
	if err != nil {
		return dibs.Result{}, err
	}
	req := dibs.ClaimRequest{
		CampaignID: r.PathValue("id"), UserID: from.user, Quantity: quantity, Key: key, Reference: reference,
		Address: h.proxies.Client(r), Device: web.Single(r.Header[headerDevice]),
		Ticket: web.Single(r.Header[headerTicket]), Admission: web.Single(r.Header[headerAdmission]),
		Until: from.token.Until, TokenID: from.token.ID, Issued: from.token.Issued,
	}
	if h.limits != nil {
		res, ok := h.limits.Enter(r.Context(), &req)
		web.SetQuota(w.Header(), &res.Quota)
		if !ok {
			return res, nil
		}
		// The claim may have waited for its turn: a token that has ended meanwhile, or was
		// revoked, claims nothing.
		if !h.auth.users.still(&from.token) {
			return dibs.Result{}, errBadToken
		}
	}
	return h.claimer.Claim(r.Context(), req)
}

// read reads the body into s.in.
func (h *claimHandler) read(w http.ResponseWriter, r *http.Request, s *scratch) error {
	s.in = s.in[:0]
	if r.Body == http.NoBody {
		return nil
	}
	// The buffer never grows for what a header promises.
	if r.ContentLength < 0 || r.ContentLength > int64(cap(s.in)) {
		// A long body, or one of unknown length: rare, and bounded by ReadBody.
		raw, err := web.ReadBody(w, r, h.maxBody)
		s.in = append(s.in, raw...)
		return err
	}
	if !web.IsJSON(r.Header) && r.ContentLength > 0 {
		return web.ErrNotJSON
	}
	s.in = s.in[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, s.in); err != nil {
		return web.ErrCutOff
	}
	return nil
}

// grant answers a yes: 201 the first time, 200 when it is repeated.
func (h *claimHandler) grant(w http.ResponseWriter, res *dibs.Result, s *scratch) {
	header := w.Header()
	web.SetJSON(header)
	header["Cache-Control"] = web.NoStore
	status := http.StatusCreated
	if res.Replayed {
		status = http.StatusOK
		header[web.HeaderReplayed] = web.True
	} else {
		header["Location"] = []string{"/v1/claims/" + res.Claim.ID}
	}
	s.out = s.out[:0]
	if len(res.Claim.Events) == 0 {
		s.out = appendClaim(s.out, res.Claim)
	} else if body, err := web.EncodeJSON(api.ClaimViewOf(res.Claim)); err == nil {
		// The repeat of a claim that was paid or cancelled meanwhile is rare.
		s.out = append(s.out, body...)
	}
	w.WriteHeader(status)
	h.respond.Write(w, s.out)
}

// refuse answers a refusal, or an error, and returns its reason.
func (h *claimHandler) refuse(w http.ResponseWriter, r *http.Request, res *dibs.Result, err error, id string, s *scratch) dibs.Reason {
	var p web.Problem
	if err != nil {
		p = h.respond.Problem(r, id, err)
	} else {
		p = web.RefusalOf(res)
	}
	p.SetHeaders(w.Header())
	if p.Reason == dibs.RateLimited {
		web.SetQuota(w.Header(), &res.Quota)
	}
	s.out = p.Append(s.out[:0], h.respond.Chinese(r), id)
	w.WriteHeader(p.StatusCode())
	h.respond.Write(w, s.out)
	return p.Reason
}

// register makes the route, which is not an operation of huma's, and documents it.
func (h *claimHandler) register(to *routes) {
	h.body = web.NewDecoder[claimBody](to.schemas, nil)
	to.describeClaim(&operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/claims", id: "claim", tag: tagUser, access: userOnly,
		summary: "Claim", example: `{"quantity":1}`,
		description: "Granted or why not, at once and for good. The body may be absent, `{}`, or name a quantity and a `reference` of your own.",
	})
	to.Handle(claimPattern, h)
}

// describeClaim documents the claim.
func (d *document) describeClaim(op *operation) {
	claim := func(description string, headers map[string]*huma.Param) *huma.Response {
		return &huma.Response{Description: description, Headers: headers, Content: d.asJSON(reflect.TypeFor[api.ClaimView]())}
	}
	text := &huma.Schema{Type: huma.TypeString}
	longestDevice := dibs.MaxDeviceLen
	d.examples[op.id] = op.example
	rs := op.problems(d)
	rs["201"] = claim("Granted, for good", map[string]*huma.Param{"Location": {Schema: text}})
	rs["200"] = claim("Granted before: the first result again", map[string]*huma.Param{web.HeaderReplayed: {Schema: text}})
	rs["400"] = d.problem("The request is not valid; `errors` lists what is wrong")
	rs["404"] = d.problem("There is no such campaign")
	rs["409"] = d.problem("Refused: paused, not_started, ended, sold_out, limit_reached, too_many_claims or waiting")
	rs["413"] = d.problem("The body is too large")
	rs["422"] = d.problem("The key was used for another quantity or reference")
	rs["503"] = d.problem("Not answered; `effect` says whether it may have been granted all the same")
	o := d.describe(op, rs)
	o.Parameters = []*huma.Param{
		idParam(),
		keyParam(),
		{
			Name: headerDevice, In: "header", Description: "the client's name for its device, for limits per device; 255 bytes at most",
			Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longestDevice},
		},
		{Name: headerTicket, In: "header", Description: "the ticket, where the campaign asks for one", Schema: text},
		{Name: headerAdmission, In: "header", Description: "the admission of the user, where there is a waiting room", Schema: text},
	}
	o.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{web.TypeJSON[0]: {
		Schema: d.schemas.Schema(reflect.TypeFor[claimBody](), true, ""), Example: json.RawMessage(op.example),
	}}}
	d.huma.OpenAPI().AddOperation(&o)
}
