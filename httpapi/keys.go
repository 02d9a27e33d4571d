package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/httpapi/internal/signin"
)

// KeyStore is what the handlers of API keys call. *dibs.Error of NotFound for an id
// without a key.
type KeyStore interface {
	// AddKey makes a key of the origins of the one that asks, and returns its secret, this once; *dibs.Error of
	// InvalidRequest.
	AddKey(ctx context.Context, spec access.KeySpec, origins ...string) (k *access.APIKey, secret string, err error)
	// Key returns a key, a revoked one too.
	Key(ctx context.Context, id string) (*access.APIKey, error)
	// ListKeys lists all keys, newest first; revoked ones too.
	ListKeys(ctx context.Context) ([]access.APIKey, error)
	// RevokeKey ends a key: at once on this node, within seconds on others.
	RevokeKey(ctx context.Context, id string) error
	// RotateKey makes a key like another one, which is valid for an overlap too.
	// origins are those of the key that asks. *dibs.Error of InvalidState for a key that is not
	// valid any more.
	RotateKey(ctx context.Context, id string, r access.KeyRotation, origins ...string) (k *access.APIKey, secret string, err error)
}

const keyExample = `{"name":"payments","role":"publisher","scopes":{"campaigns":["phone-*"],"actions":["confirm-claim"]},"expires_at":"2027-12-01T00:00:00Z"}`

// registerKeys adds the routes that manage API keys. No key with scopes may call them: it could make one
// without.
func registerKeys(a *routes, store KeyStore) {
	get := func(ctx context.Context, id string) (access.KeyView, error) {
		return viewOf((*access.APIKey).View)(store.Key(ctx, id))
	}
	subject(a, "/v1/keys/{id}", get)
	create := accessOperation(http.MethodPost, "/v1/keys", "create-key", "Make an API key", "The answer has the key itself, `secret`, this once: a repeat by Idempotency-Key does not have it.")
	create.status, create.example = http.StatusCreated, keyExample
	change(a, create, func(ctx context.Context, c *call, _ *struct{}, spec *access.KeySpec) (access.KeyView, error) {
		if err := a.knownActions(spec.Scopes); err != nil {
			return access.KeyView{}, err
		}
		return madeKey(c)(store.AddKey(ctx, *spec, c.caller.origins...))
	})
	list := accessOperation(http.MethodGet, "/v1/keys", "list-keys", "List API keys, newest first", "Revoked and expired ones too.")
	list.strictQuery = true
	register(a, list, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (api.ListView[access.KeyView], error) {
		return pageOf(in.PageQuery, func(k *access.APIKey) string { return k.ID }, (*access.APIKey).View)(store.ListKeys(ctx))
	})
	register(a, accessOperation(http.MethodGet, "/v1/keys/{id}", "get-key", "Show an API key", ""), byID(get))
	register(a, accessOperation(http.MethodDelete, "/v1/keys/{id}", "revoke-key", "Revoke an API key", "At once on this node, within seconds on others. A repeat changes nothing."),
		func(ctx context.Context, _ *call, in *PathID) (access.KeyView, error) {
			if err := store.RevokeKey(ctx, in.ID); err != nil {
				return access.KeyView{}, err
			}
			return get(ctx, in.ID)
		})
	rotate := accessOperation(http.MethodPost, "/v1/keys/{id}/rotate", "rotate-key", "Make a key in place of another one",
		"With the same name, role and scopes, and without an end. The old key is valid for `overlap` too, a day by default. "+
			"Neither the key that asks nor one that it made can approve what the new key asks for, nor the other way round.")
	rotate.status, rotate.example = http.StatusCreated, `{"overlap":"1h"}`
	change(a, rotate, func(ctx context.Context, c *call, in *PathID, r *access.KeyRotation) (access.KeyView, error) {
		return madeKey(c)(store.RotateKey(ctx, in.ID, *r, c.caller.origins...))
	})
}

// knownActions refuses scopes that name no operation of this API: the key could do nothing, and
// its holder would learn that with the first call.
func (a *routes) knownActions(s *access.Scopes) error {
	if s == nil {
		return nil
	}
	for _, id := range s.Actions {
		if dibs.IsID(id) && !a.ids[id] {
			return dibs.Invalid(dibs.Fault{Field: "/scopes/actions", Problem: dibs.Textf("%q is no operation of /openapi.json", "/openapi.json 中没有操作 %q", id)})
		}
	}
	return nil
}

// madeKey shows a key that was made, with its secret.
// The secret is shown here and nowhere else: neither the log nor the remembered
// answer has it.
func madeKey(c *call) func(*access.APIKey, string, error) (access.KeyView, error) {
	return func(k *access.APIKey, secret string, err error) (access.KeyView, error) {
		if err != nil {
			return access.KeyView{}, err
		}
		v := k.View()
		v.Secret = secret
		c.Header().Set("Location", "/v1/keys/"+v.ID)
		return v, nil
	}
}

var errNoPage = dibs.Invalid(dibs.Fault{Field: "/cursor", Problem: dibs.Text{EN: "is not one of this list", ZH: "不属于此列表"}})

// Revocations is what the handlers of revoked tokens call. *dibs.Error of NotFound for an id
// without a revocation.
type Revocations interface {
	// Revoke revokes tokens: at once on this node, within a second on others. *dibs.Error of
	// InvalidRequest.
	Revoke(ctx context.Context, spec access.RevocationSpec) (*access.Revocation, error)
	// List lists all revocations, newest first.
	List(ctx context.Context) ([]access.Revocation, error)
	Revocation(ctx context.Context, id string) (*access.Revocation, error)
	// Allow takes a revocation back.
	Allow(ctx context.Context, id string) error
}

// registerRevocations adds the routes that end tokens of users before their time.
func registerRevocations(a *routes, revocations Revocations) {
	get := func(ctx context.Context, id string) (access.RevocationView, error) {
		return viewOf((*access.Revocation).View)(revocations.Revocation(ctx, id))
	}
	subject(a, "/v1/token-revocations/{id}", get)
	create := accessOperation(http.MethodPost, "/v1/token-revocations", "revoke-token", "Revoke tokens of users", "One token by its `jti`, or all of a user that were issued up to now. "+
		"They are refused at once on this node, and within a second on others; open WebSockets are closed.")
	create.status, create.example = http.StatusCreated, `{"user_id":"42","why":"the account was taken over"}`
	change(a, create, func(ctx context.Context, c *call, _ *struct{}, spec *access.RevocationSpec) (access.RevocationView, error) {
		r, err := revocations.Revoke(ctx, *spec)
		if err != nil {
			return access.RevocationView{}, err
		}
		c.Header().Set("Location", "/v1/token-revocations/"+r.ID)
		return r.View(), nil
	})
	list := accessOperation(http.MethodGet, "/v1/token-revocations", "list-token-revocations", "List revoked tokens, newest first", "Revocations are forgotten at `expires_at`.")
	list.strictQuery, list.personal = true, true
	register(a, list, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (api.ListView[access.RevocationView], error) {
		return pageOf(in.PageQuery, func(r *access.Revocation) string { return r.ID }, (*access.Revocation).View)(revocations.List(ctx))
	})
	register(a, accessOperation(http.MethodDelete, "/v1/token-revocations/{id}", "allow-token", "Take a revocation back", "The tokens are valid again, until they end by themselves."),
		func(ctx context.Context, _ *call, in *PathID) (access.RevocationView, error) {
			v, err := get(ctx, in.ID)
			if err != nil {
				return v, err
			}
			return v, revocations.Allow(ctx, in.ID)
		})
}

// Sessions keeps the sessions of the console. *dibs.Error of NotFound for an id without one.
type Sessions interface {
	signin.Sessions
	// Begin notes a session of a key that lasts until then, or as long as the key.
	Begin(ctx context.Context, k *access.APIKey, until time.Time, address, agent string) (*access.Session, error)
	// Check returns nil for a session that lasts; *dibs.Error of Unauthenticated for one that
	// was ended.
	Check(ctx context.Context, id string) error
	// List lists the sessions of a key that last, or of all keys when it is empty.
	List(ctx context.Context, key string) ([]access.Session, error)
	Get(ctx context.Context, id string) (*access.Session, error)
	// End ends a session: at once on this node, within a second on others.
	End(ctx context.Context, id string) error
}

// registerList adds the routes that list sessions and end them. A key sees its own; one of the
// role admin without scopes sees all.
func (h *sessionHandlers) registerList() {
	const path = "/v1/sessions"
	register(h.routes, operation{
		method: http.MethodGet, path: path, id: "list-sessions", tag: tagAccess, access: adminOnly, strictQuery: true,
		summary: "List sessions of the console, newest first", description: "Those of the key that asks; of all keys for a key of the role admin without scopes.",
	}, func(ctx context.Context, c *call, in *struct{ PageQuery }) (api.ListView[access.ConsoleSessionView], error) {
		of := c.caller.key
		if c.seesAllSessions() {
			of = ""
		}
		mine, _ := h.sessions.Of(c.request)
		return pageOf(in.PageQuery, func(s *access.Session) string { return s.ID }, func(s *access.Session) access.ConsoleSessionView {
			v := s.View()
			v.Current = s.ID == mine.ID
			return v
		})(h.kept.List(ctx, of))
	})
	register(h.routes, operation{
		method: http.MethodDelete, path: path + "/{id}", id: "end-session", tag: tagAccess, access: adminOnly, role: access.RoleViewer,
		summary: "End a session of the console", description: "One of the key that asks; any for a key of the role admin without scopes. A repeat changes nothing.",
	}, func(ctx context.Context, c *call, in *PathID) (access.ConsoleSessionView, error) {
		is, err := h.kept.Get(ctx, in.ID)
		if err == nil && is.Key != c.caller.key && !c.seesAllSessions() {
			err = errNoSession
		}
		if err != nil {
			return access.ConsoleSessionView{}, err
		}
		return is.View(), h.kept.End(ctx, in.ID)
	})
}

var errNoSession = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such session", ZH: "该会话不存在"})

// seesAllSessions reports whether the caller may see and end the sessions of other keys.
func (c *call) seesAllSessions() bool {
	return c.caller.role.May(access.RoleAdmin) && c.caller.scopes.Empty()
}

// pageOf shows a page of a list that a call returned as a whole; the cursor is the last item's id.
func pageOf[T, V any](q PageQuery, id func(*T) string, view func(*T) V) func([]T, error) (api.ListView[V], error) {
	return func(all []T, err error) (api.ListView[V], error) {
		if err == nil && q.Cursor != "" {
			at := slices.IndexFunc(all, func(item T) bool { return id(&item) == q.Cursor })
			// The item is of another list, or gone.
			if at < 0 {
				return api.ListView[V]{}, errNoPage
			}
			all = all[at+1:]
		}
		page := dibs.List[T]{Items: all}
		if limit := cmp.Or(q.Limit, dibs.DefaultPage); len(all) > limit {
			page = dibs.List[T]{Items: all[:limit], NextCursor: id(&all[limit-1])}
		}
		return listOf(view)(page, err)
	}
}
