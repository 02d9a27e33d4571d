package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
)

const tagUsers = "Admin: data of users"

// erasuresInput says which erasures are wanted.
type erasuresInput struct {
	PageQuery
	Open bool `query:"open" doc:"only those that are not done"`
}

func (a *api) registerUsers() {
	register(a, operation{
		method: http.MethodGet, path: "/v1/users/{user}", id: "get-user", tag: tagUsers, access: adminOnly, role: dibs.RoleAdmin,
		summary:     "Show what there is about a user",
		description: "For the user's own question. It reads every list of users, so that it may take a while. Lists in it end after 1,000.",
	}, func(ctx context.Context, _ *call, in *PathUser) (dibs.UserRecord, error) {
		return a.svc.UserRecord(ctx, in.User)
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/users/{user}/erasure", id: "erase-user", tag: tagUsers, access: adminOnly, role: dibs.RoleAdmin,
		summary: "Erase a user", status: http.StatusAccepted, example: `{"leave_balance":false}`, maxBody: a.cfg.MaxBody,
		knowsRepeats: true, hidesUser: true,
		description: "A pseudonym takes the user's place: random, and kept nowhere once it is done. Counts, stock and sums of money stay. " +
			"What an engine still needs is erased when its campaigns are over: until then the erasure is `waiting`, and says for what. " +
			"The same again returns the erasure under way. A user who has money is refused without `leave_balance`.",
	}, func(ctx context.Context, c *call, in *PathUser, spec *dibs.ErasureSpec) (dibs.ErasureView, error) {
		v, known, err := a.svc.Erase(ctx, in.User, *spec)
		if known {
			c.Header()[headerReplayed] = isTrue
		}
		return v, err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/erasures", id: "list-erasures", tag: tagUsers, access: adminOnly, role: dibs.RoleAdmin, strictQuery: true,
		summary: "List erasures of users, newest first",
	}, func(ctx context.Context, _ *call, in *erasuresInput) (dibs.ListView[dibs.ErasureView], error) {
		l, err := a.svc.Erasures(ctx, in.Open, in.page())
		return listOf(l, (*dibs.Erasure).View), err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/erasures/{id}", id: "get-erasure", tag: tagUsers, access: adminOnly, role: dibs.RoleAdmin,
		summary: "Show how far an erasure is", description: "Once it is done, it says no more whose it was.",
	}, func(ctx context.Context, _ *call, in *PathID) (dibs.ErasureView, error) {
		return a.svc.Erasure(ctx, in.ID)
	})
}
