package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// takeTurn asks limits, nil for none, for one more call, and says in the headers of the answer what is left of one that
// refuses.
func takeTurn(ctx context.Context, h http.Header, limits Limits, of dibs.ClaimRequest) error {
	if limits == nil {
		return nil
	}
	res, ok := limits.Enter(ctx, &of)
	if !ok {
		web.SetQuota(h, &res.Quota)
		return web.RefusalOf(&res)
	}
	return nil
}

// strangers bound what is not paid for by a user or a key, for each address; limits is nil for no bound.
type strangers struct {
	limits  Limits
	proxies *web.Proxies
}

// count counts a call without credentials by its address. Those of this machine are not counted: it is a proxy that is
// not trusted, or a monitor.
func (s strangers) count(w http.ResponseWriter, r *http.Request) error {
	at := s.proxies.Client(r)
	if !web.Network(at).IsValid() {
		return nil
	}
	return takeTurn(r.Context(), w.Header(), s.limits, dibs.ClaimRequest{Address: at})
}

// streamBound lets an address have a bounded number of requests under way over HTTP/2, where one connection carries many.
// Each keeps in memory what has come of its body. Requests over HTTP/1.1 pass: their connections are counted.
type streamBound struct {
	next   http.Handler
	router *router
	// most is how many an address may have; below 1 for any number.
	most int
	open web.AddressCounts
}

var errStreams = &dibs.Error{
	Reason: dibs.RateLimited, Effect: dibs.EffectNone, RetryAfter: time.Second,
	Detail: dibs.Text{EN: "too many requests of your address are under way", ZH: "您的地址同时进行的请求过多"},
}

// ServeHTTP serves a request of an address that has fewer than it may have.
func (b *streamBound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 || b.most < 1 {
		b.next.ServeHTTP(w, r)
		return
	}
	at := b.router.proxies.Client(r)
	if !b.open.Enter(at, b.most) {
		b.router.called(b.router.metrics.route("http2"), false, func(_ http.ResponseWriter, r *http.Request) {
			b.router.fail(callOf(r.Context()), errStreams)
		})(w, r)
		return
	}
	defer b.open.Leave(at)
	b.next.ServeHTTP(w, r)
}
