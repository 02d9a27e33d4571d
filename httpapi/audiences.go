package httpapi

import (
	"context"
	"io"
	"net/http"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"

	"github.com/dibs-dev/dibs/gate"
)

// Audiences is what the handlers of lists of users and of followers call;
// audience.Keeper fills it. ErrNotFound for an id without a list; *dibs.Error of
// InvalidRequest with the first bad lines of a file. The imports call done now and then
// with how many users they have stored.
type Audiences interface {
	// Import replaces a list. All of its users count from one moment on, or none does.
	Import(ctx context.Context, id string, file io.Reader, done func(stored int64)) (api.AudienceView, error)
	Audience(ctx context.Context, id string) (*dibs.Audience, error)
	AudienceList(ctx context.Context, page dibs.Page) (dibs.List[dibs.Audience], error)
	// ImportFollowers adds followers. After a failure it may be repeated.
	ImportFollowers(ctx context.Context, merchant string, file io.ReadSeeker, done func(stored int64)) (api.FollowersView, error)
	Merchant(ctx context.Context, id string) (gate.Merchant, error)
	// Follow makes a user follow a merchant, or no longer. It may be repeated; the last
	// rank counts.
	Follow(ctx context.Context, merchant string, f gate.Follower, follows bool) error
	// Followers lists followers by falling rank.
	Followers(ctx context.Context, merchant string, page dibs.Page) (dibs.List[gate.Follower], error)
}

// maxAudienceFile bounds a file of users, in bytes.
// Ten million users with ids of 64 characters and ranks fit.
const maxAudienceFile = 1 << 30

// followerPath names a follower.
type followerPath struct {
	PathID
	PathUser
}

// followerBody ranks a follower.
type followerBody struct {
	Rank int64 `json:"rank,omitempty" doc:"followers of a higher rank are told first"`
}

// merchantView is a merchant as shown.
type merchantView struct {
	ID        string `json:"id"`
	Followers int64  `json:"followers"`
}

// followerView is a follower as shown.
type followerView struct {
	Merchant string `json:"merchant"`
	User     string `json:"user"`
	Follows  bool   `json:"follows"`
}

// registerAudiences adds the routes that import and show lists of users, and followers.
// Imports know repeats by themselves: a list is replaced as a whole, and following
// twice is following once.
func registerAudiences(a *routes, audiences Audiences) {
	view := func(ctx context.Context, id string) (api.AudienceView, error) {
		return viewOf(api.AudienceViewOf)(audiences.Audience(ctx, id))
	}
	subject(a, "/v1/audiences/{id}", view)
	registerImports(a, audiences)
	register(a, operation{
		method: http.MethodGet, path: "/v1/audiences", id: "list-audiences", tag: tagAdmin, access: adminOnly,
		summary: "List the lists of users by id",
	}, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (api.ListView[api.AudienceView], error) {
		return listOf(api.AudienceViewOf)(audiences.AudienceList(ctx, in.page()))
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/audiences/{id}", id: "get-audience", tag: tagAdmin, access: adminOnly,
		summary: "Show a list of users",
	}, byID(view))
	register(a, operation{
		method: http.MethodGet, path: "/v1/merchants/{id}/followers", id: "list-followers", personal: true, tag: tagAdmin, access: adminOnly,
		summary: "List a merchant's followers, the highest rank first",
	}, func(ctx context.Context, _ *call, in *idPage) (api.ListView[gate.Follower], error) {
		return listOf(itself[gate.Follower])(audiences.Followers(ctx, in.ID, in.page()))
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/merchants/{id}", id: "get-merchant", tag: tagAdmin, access: adminOnly,
		summary: "Show how many users follow a merchant",
	}, func(ctx context.Context, _ *call, in *PathID) (merchantView, error) {
		m, err := audiences.Merchant(ctx, in.ID)
		return merchantView{m.ID, m.Followers}, err
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/merchants/{id}/followers/{user}", id: "follow", tag: tagAdmin, access: adminOnly,
		role: access.RolePublisher, knowsRepeats: true, example: `{"rank":5}`,
		summary: "Make a user follow a merchant", description: "Nodes let followers through within about a second. A later call with another rank replaces it.",
	}, func(ctx context.Context, _ *call, in *followerPath, b *followerBody) (followerView, error) {
		err := audiences.Follow(ctx, in.ID, gate.Follower{User: in.User, Rank: b.Rank}, true)
		return followerView{in.ID, in.User, true}, err
	})
	register(a, operation{
		method: http.MethodDelete, path: "/v1/merchants/{id}/followers/{user}", id: "unfollow", tag: tagAdmin, access: adminOnly,
		role: access.RolePublisher, summary: "Make a user no longer follow a merchant",
	}, func(ctx context.Context, _ *call, in *followerPath) (followerView, error) {
		err := audiences.Follow(ctx, in.ID, gate.Follower{User: in.User}, false)
		return followerView{in.ID, in.User, false}, err
	})
}

// registerImports adds the uploads of lists and of followers.
func registerImports(a *routes, audiences Audiences) {
	upload(a, operation{
		method: http.MethodPut, path: "/v1/audiences/{id}", id: "import-audience", tag: tagAdmin, access: adminOnly, role: access.RolePublisher, knowsRepeats: true,
		summary: "Replace a list of users by those of a CSV file",
		description: "One user on each line, 10,000,000 at most; a first line `user` or `user_id` is left out. All of them count from one moment on, or none: " +
			"`errors` names the first lines that cannot be read. With `Prefer: progress`, interim answers (102) say in `" + headerImported + "` how far it is.",
		example: "user\n42\n43\n",
	}, maxAudienceFile, func(ctx context.Context, c *call, file io.ReadSeeker, _ string) (api.AudienceView, error) {
		return audiences.Import(ctx, c.request.PathValue("id"), file, web.Progress(c, c.request, headerImported))
	})
	upload(a, operation{
		method: http.MethodPost, path: "/v1/merchants/{id}/followers", id: "import-followers", tag: tagAdmin, access: adminOnly, role: access.RolePublisher, knowsRepeats: true,
		summary: "Make the users of a CSV file follow a merchant",
		description: "`user` or `user,rank` on each line, 10,000,000 at most; a first line that says so is left out. When a line cannot be read, none of the users follows, and `errors` " +
			"names the first bad lines. An import that was broken off can be repeated. With `Prefer: progress`, interim answers (102) say in `" + headerImported + "` how far it is.",
		example: "user,rank\n42,5\n43,0\n",
	}, maxAudienceFile, func(ctx context.Context, c *call, file io.ReadSeeker, _ string) (api.FollowersView, error) {
		return audiences.ImportFollowers(ctx, c.request.PathValue("id"), file, web.Progress(c, c.request, headerImported))
	})
}
