package httpapi

import (
	"context"
	"io"
	"net/http"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// call is one request on any route but the claim's: its writer, its caller, and how
// it is answered. Only the goroutine of the request uses it.
type call struct {
	web.Recorder
	request *http.Request
	id      string
	zh      bool
	caller  caller
	// outside says that the call came to the listener for users.
	outside bool
	// code replaces the route's status when it is set, and stream its body.
	code   int
	stream func(io.Writer) error
}

type callKey struct{}

// callOf returns the call of a context, nil when it is not of this package.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// replayed says in the answer that an earlier request had it first.
func (c *call) replayed() { c.Header()[web.HeaderReplayed] = web.True }

// visitor is the call as packages that know no HTTP see its client.
func (c *call) visitor(p *web.Proxies) dibs.Visitor {
	return dibs.Visitor{Chinese: c.zh, RequestID: c.id, Address: p.Client(c.request)}
}
