package httpapi

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/dibs-dev/dibs/access"
)

// operation is a route with its documentation.
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
	// knowsRepeats says that the route itself returns the first result to a
	// repeat, for as long as there is one.
	knowsRepeats bool
	// hidesUser keeps the user of the path, and of the answer, out of the admin log.
	hidesUser bool
	// logged puts a GET into the admin log, since what it shows is worth money. The
	// log does not have what was shown.
	logged bool
	// strictQuery refuses parameters that the route does not have, so that a misspelt
	// filter is not ignored.
	strictQuery bool
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

// describe is the route's description, with what a key needs.
func (op *operation) describe() string {
	if op.access != adminOnly && op.access != either {
		return op.description
	}
	text := strings.TrimSpace(op.description + " Keys need the role " + string(op.needs()))
	if op.needs() == access.RoleAdmin {
		return text + "."
	}
	return text + " or a higher one."
}
