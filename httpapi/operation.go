package httpapi

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
)

// operation is a route with its documentation.
// It does not change once its route is registered.
type operation struct {
	method, path string
	id           string
	tag          string
	summary      string
	description  string
	access       callers
	// role is the least that a key needs; default: viewer for GET, admin for all
	// else.
	role access.Role
	// status is the one of success, default 200.
	status int
	// body is the type of the request's body, nil for none, and example one.
	body    reflect.Type
	example string
	// maxBody bounds the body in bytes; default Config.MaxBody.
	maxBody int64
	// mayBeEmpty says that no body is an empty object.
	mayBeEmpty bool
	// knowsRepeats says that the route itself returns the first result to a
	// repeat, for as long as there is one.
	knowsRepeats bool
	// byKey says that such a route knows a repeat by its Idempotency-Key; others know it by
	// what is asked for, or do it again, and the key has no effect.
	byKey bool
	// hidesUser keeps the user of the path, and of the answer, out of the admin log.
	hidesUser bool
	// logged puts a GET into the admin log, since what it shows is worth money. The
	// log does not have what was shown.
	logged bool
	// limited says that the route asks the limits of claims itself.
	limited bool
	// counted says that an open route asks more than this node's memory: it counts as a
	// stranger's call.
	counted bool
	// inside says that the listener for users does not have the route, though it is open.
	inside bool
	// first is asked before the body is read; nil for nothing.
	first func(c *call) error
	// single are the parameters of the query that may come once; add sets them.
	single []string
	// unscoped keeps keys with scopes out.
	unscoped bool
	// second says when an act waits for a second person; nil for never.
	second *second
	// personal puts a GET of administrators into the admin log, since it shows what users
	// did or have: once a minute for the same key and the same thing, however many pages
	// are read.
	personal bool
	// long says that the work may take longer than the server gives to an answer: its time begins when the work is
	// done.
	long bool
	// strictQuery refuses parameters that the route does not have, so that a misspelt
	// filter is not ignored.
	strictQuery bool
}

// accessOperation is one about who may do what, for a key of the role admin without scopes.
func accessOperation(method, path, id, summary, description string) operation {
	return operation{
		method: method, path: path, id: id, tag: tagAccess, access: adminOnly, role: access.RoleAdmin, unscoped: true,
		summary: summary, description: description,
	}
}

// noBody is the body of an action that has no parameters.
type noBody struct{}

func (op *operation) successStatus() int {
	if op.status == 0 {
		return http.StatusOK
	}
	return op.status
}

// needs is the least role of a key that may call the route. A route that names no
// role is for admins, unless it only reads.
func (op *operation) needs() access.Role {
	switch {
	case op.role != "":
		return op.role
	case op.method == http.MethodGet:
		return access.RoleViewer
	}
	return access.RoleAdmin
}

// takesKey reports whether an Idempotency-Key has an effect.
func (op *operation) takesKey() bool { return !op.knowsRepeats || op.byKey }

// describe is the route's description, with what its callers need.
func (op *operation) describe() string {
	text := op.description
	if op.method == http.MethodPost && !op.takesKey() {
		text = strings.TrimSpace(text + " An `Idempotency-Key` has no effect.")
	}
	if op.access != adminOnly && op.access != either {
		return text
	}
	text = strings.TrimSpace(text + " Keys need the role " + string(op.needs()))
	if op.needs() == access.RoleAdmin {
		return text + "."
	}
	return text + " or a higher one."
}

// call is one request on any route but the claim's: its writer, its caller, and how
// it is answered. Only the goroutine of the request uses it.
//
// admit sets caller before a handler runs. A handler may set code, stream and
// headers, and never writes to the Recorder itself, unless its route is a plain one.
type call struct {
	web.Recorder
	request *http.Request
	id      string
	zh      bool
	caller  caller
	// outside says that the call came to the listener for users.
	outside bool
	// approved says that a second person has approved the call.
	approved bool
	// act is the id of the call's entry in the admin log; empty before there is one.
	act string
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

// located sets Location to what was made. With an error it only returns that.
func (c *call) located(path, id string, err error) error {
	if err == nil {
		c.Header().Set("Location", path+id)
	}
	return err
}

// replayed says in the answer that an earlier request had it first.
func (c *call) replayed() { c.Header()[web.HeaderReplayed] = web.True }

// writeTimeout is how long the server gives to an answer, from its request on.
const writeTimeout = time.Minute

// takeLong takes the server's deadline from a call. answer sets it anew, for what is sent then.
func (c *call) takeLong() (answer func()) {
	rc := http.NewResponseController(c)
	// A writer without deadlines needs none; only tests have such.
	_ = rc.SetWriteDeadline(time.Time{})
	return func() { _ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) }
}

// visitor is the call as packages that know no HTTP see its client.
func (c *call) visitor(p *web.Proxies) dibs.Visitor {
	return dibs.Visitor{Chinese: c.zh, RequestID: c.id, Address: p.Client(c.request)}
}
