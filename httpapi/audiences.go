package httpapi

import (
	"context"
	"io"
	"mime"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

// Audiences is what the handlers need of lists of users and of followers;
// audience.Keeper is the one that exists.
type Audiences interface {
	Import(ctx context.Context, id string, file io.Reader, done func(stored int64)) (dibs.AudienceView, error)
	Audience(ctx context.Context, id string) (*dibs.Audience, error)
	AudienceList(ctx context.Context, page dibs.Page) (dibs.List[dibs.Audience], error)
	ImportFollowers(ctx context.Context, merchant string, file io.ReadSeeker, done func(stored int64)) (dibs.FollowersView, error)
	Merchant(ctx context.Context, id string) (dibs.Merchant, error)
	Follow(ctx context.Context, merchant string, f dibs.Follower, follows bool) error
	Followers(ctx context.Context, merchant string, page dibs.Page) (dibs.List[dibs.Follower], error)
}

const (
	// maxAudienceFile bounds a file of users.
	maxAudienceFile = 1 << 30
)

// followerPath names a follower.
type followerPath struct {
	PathID
	User string `path:"user" doc:"1-64 characters of A-Z a-z 0-9 . _ -"`
}

// followerBody is what is said of a follower.
type followerBody struct {
	Rank int64 `json:"rank,omitempty" doc:"the higher hears first"`
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

func (a *api) registerAudiences() {
	if a.cfg.Audiences == nil {
		return
	}
	a.registerAudienceImports()
	a.registerAnnouncements()
	register(a, operation{
		method: http.MethodGet, path: "/v1/audiences", id: "list-audiences", tag: tagAdmin, access: adminOnly,
		summary: "List the lists of users by id",
	}, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (dibs.ListView[dibs.AudienceView], error) {
		l, err := a.cfg.Audiences.AudienceList(ctx, in.page())
		return listOf(l, (*dibs.Audience).View), err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/audiences/{id}", id: "get-audience", tag: tagAdmin, access: adminOnly,
		summary: "Show a list of users",
	}, func(ctx context.Context, _ *call, in *PathID) (dibs.AudienceView, error) {
		l, err := a.cfg.Audiences.Audience(ctx, in.ID)
		if err != nil {
			return dibs.AudienceView{}, err
		}
		return l.View(), nil
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/merchants/{id}/followers", id: "list-followers", tag: tagAdmin, access: adminOnly,
		summary: "List a merchant's followers, the highest rank first",
	}, func(ctx context.Context, _ *call, in *struct {
		PathID
		PageQuery
	},
	) (dibs.ListView[dibs.Follower], error) {
		l, err := a.cfg.Audiences.Followers(ctx, in.ID, in.page())
		return listOf(l, func(f *dibs.Follower) dibs.Follower { return *f }), err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/merchants/{id}", id: "get-merchant", tag: tagAdmin, access: adminOnly,
		summary: "How many follow a merchant",
	}, func(ctx context.Context, _ *call, in *PathID) (merchantView, error) {
		m, err := a.cfg.Audiences.Merchant(ctx, in.ID)
		return merchantView{m.ID, m.Followers}, err
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/merchants/{id}/followers/{user}", id: "follow", tag: tagAdmin, access: adminOnly,
		role: dibs.RolePublisher, knowsRepeats: true, maxBody: a.cfg.MaxBody, example: `{"rank":5}`,
		summary: "Have a user follow a merchant", description: "Nodes let followers through within about a second. Again with another rank, that counts.",
	}, func(ctx context.Context, _ *call, in *followerPath, b *followerBody) (followerView, error) {
		err := a.cfg.Audiences.Follow(ctx, in.ID, dibs.Follower{User: in.User, Rank: b.Rank}, true)
		return followerView{in.ID, in.User, true}, err
	})
	register(a, operation{
		method: http.MethodDelete, path: "/v1/merchants/{id}/followers/{user}", id: "unfollow", tag: tagAdmin, access: adminOnly,
		role: dibs.RolePublisher, summary: "Have a user follow a merchant no longer",
	}, func(ctx context.Context, _ *call, in *followerPath) (followerView, error) {
		err := a.cfg.Audiences.Follow(ctx, in.ID, dibs.Follower{User: in.User}, false)
		return followerView{in.ID, in.User, false}, err
	})
}

// registerAudienceImports adds the uploads of lists and of followers.
func (a *api) registerAudienceImports() {
	registerUpload(a, operation{
		method: http.MethodPut, path: "/v1/audiences/{id}", id: "import-audience", tag: tagAdmin, access: adminOnly, role: dibs.RolePublisher,
		summary: "Replace a list of users by those of a CSV file",
		description: "One user on each line, 10,000,000 at most; a first line `user` or `user_id` is left out. All of them count from one moment on, or none: " +
			"`errors` names the first lines that cannot be read. With `Prefer: progress`, interim answers (102) say in `" + headerImported + "` how far it is.",
		example: "user\n42\n43\n",
	}, func(ctx context.Context, id string, file io.ReadSeeker, done func(int64)) (dibs.AudienceView, error) {
		return a.cfg.Audiences.Import(ctx, id, file, done)
	})
	registerUpload(a, operation{
		method: http.MethodPost, path: "/v1/merchants/{id}/followers", id: "import-followers", tag: tagAdmin, access: adminOnly, role: dibs.RolePublisher,
		summary: "Have the users of a CSV file follow a merchant",
		description: "`user` or `user,rank` on each line, 10,000,000 at most; a first line that says so is left out. When a line cannot be read, nobody follows, and `errors` " +
			"names the first of them. An import that is broken off can be repeated. With `Prefer: progress`, interim answers (102) say in `" + headerImported + "` how far it is.",
		example: "user,rank\n42,5\n43,0\n",
	}, func(ctx context.Context, id string, file io.ReadSeeker, done func(int64)) (dibs.FollowersView, error) {
		return a.cfg.Audiences.ImportFollowers(ctx, id, file, done)
	})
}

// registerUpload adds a route whose body is a CSV file.
func registerUpload[T any](a *api, op operation, run func(ctx context.Context, id string, file io.ReadSeeker, done func(int64)) (T, error)) {
	rs := op.problems(a)
	rs["200"] = &huma.Response{Description: "Imported", Content: map[string]*huma.MediaType{
		"application/json": {Schema: a.schemas.Schema(reflect.TypeFor[T](), true, "")},
	}}
	rs["413"] = a.problemResponse("The file is too large")
	rs["415"] = a.problemResponse("The body is no CSV")
	a.huma.OpenAPI().AddOperation(&huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.tag},
		Summary: op.summary, Description: op.describe(), Responses: rs, Security: op.access.security(),
		Parameters: []*huma.Param{{Name: "id", In: "path", Required: true, Description: idDoc, Schema: &huma.Schema{Type: huma.TypeString}}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"text/csv": {
			Schema: &huma.Schema{Type: huma.TypeString}, Example: op.example,
		}}},
	})
	a.routes.inner(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		view, err := upload(a, c, &op, run)
		if err != nil {
			a.fail(c, err)
			return
		}
		body, err := encodeJSON(view)
		if err != nil {
			a.fail(c, err)
			return
		}
		w.Header()["Content-Type"] = typeJSON
		a.write(w, body)
	})
}

// upload reads the file and has it imported.
func upload[T any](a *api, c *call, op *operation, run func(ctx context.Context, id string, file io.ReadSeeker, done func(int64)) (T, error)) (v T, err error) {
	r := c.request
	if c.who, err = a.admitRole(r.Context(), r.Header, adminOnly, op.needs()); err != nil {
		return v, err
	}
	defer a.trace(c, op)()
	r = c.request
	c.Header()["Cache-Control"] = noStore
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "text/csv" {
		return v, errNotCSV
	}
	file, _, err := a.keepFile(c, maxAudienceFile)
	if err != nil {
		return v, err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
	}()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return v, dibs.Unavail(dibs.EffectNone, err)
	}
	return audited(r.Context(), a, c, op, func() (T, error) {
		return run(r.Context(), r.PathValue("id"), file, a.progress(c))
	})
}
