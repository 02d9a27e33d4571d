package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/erasure"
)

// Users is what the handlers of users' data call.
type Users interface {
	// Record returns everything that is stored about a user. It reads every list of
	// users, which may take a while.
	Record(ctx context.Context, user string) (erasure.UserRecord, error)
	// Erase begins to erase a user; the bool reports that the user's erasure is under way
	// already. spec.Act is the entry of the admin log that asks for it. *dibs.Error of InvalidState for a user who has money, unless spec leaves it.
	Erase(ctx context.Context, user string, spec erasure.ErasureSpec) (v erasure.ErasureView, known bool, err error)
	// Get returns an erasure; ErrNotFound.
	Get(ctx context.Context, id string) (erasure.ErasureView, error)
	// List lists erasures, newest first; open leaves out those that are done.
	List(ctx context.Context, open bool, page dibs.Page) (dibs.List[erasure.Erasure], error)
}

// erasuresInput filters erasures.
type erasuresInput struct {
	PageQuery
	Open bool `query:"open" doc:"only those that are not done"`
}

// registerUsers adds the routes that show users' data, and erase it.
// The log has no user who is erased: erase-user hides the name.
func registerUsers(a *routes, users Users) {
	register(a, operation{
		method: http.MethodGet, path: "/v1/users/{user}", id: "get-user", personal: true, tag: tagUsers, access: adminOnly, role: access.RoleAdmin, long: true,
		summary:     "Show the data of a user",
		description: "For a user's request for it. It reads every list of users, so that it may take a while. Lists in it end after 1,000.",
	}, func(ctx context.Context, _ *call, in *PathUser) (erasure.UserRecord, error) {
		return users.Record(ctx, in.User)
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/users/{user}/erasure", id: "erase-user", tag: tagUsers, access: adminOnly, role: access.RoleAdmin,
		summary: "Erase a user", status: http.StatusAccepted, example: `{"leave_balance":false}`, knowsRepeats: true, hidesUser: true, second: &second{act: access.ActErasure},
		description: "A pseudonym replaces the user: it is random, and not kept once the erasure is done. Counts, stock and sums of money stay. " +
			"Data that an engine still needs is erased when its campaigns are over: until then the erasure is `waiting`, and says for what. " +
			"A repeat returns the erasure under way. A user who has money is refused without `leave_balance`.",
	}, func(ctx context.Context, c *call, in *PathUser, spec *erasure.ErasureSpec) (erasure.ErasureView, error) {
		spec.Act = c.act
		v, known, err := users.Erase(ctx, in.User, *spec)
		if known {
			c.replayed()
		}
		return v, err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/erasures", id: "list-erasures", personal: true, tag: tagUsers, access: adminOnly, role: access.RoleAdmin, strictQuery: true,
		summary: "List erasures of users, newest first",
	}, func(ctx context.Context, _ *call, in *erasuresInput) (api.ListView[erasure.ErasureView], error) {
		return listOf((*erasure.Erasure).View)(users.List(ctx, in.Open, in.page()))
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/erasures/{id}", id: "get-erasure", personal: true, tag: tagUsers, access: adminOnly, role: access.RoleAdmin,
		summary: "Show how far an erasure is", description: "Once it is done, it no longer names the user.",
	}, byID(users.Get))
}
