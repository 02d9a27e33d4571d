package httpapi

import (
	"context"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

const idDoc = "1-64 characters of A-Z a-z 0-9 . _ -"

// PathID is the id in a path. huma finds the parameters of exported embedded
// types only.
type PathID struct {
	ID string `path:"id" doc:"1-64 characters of A-Z a-z 0-9 . _ -"`
}

// PathUser is the user in an admin's path; exported as PathID is.
type PathUser struct {
	User string `path:"user" doc:"1-64 characters of A-Z a-z 0-9 . _ -"`
}

// PageQuery asks for a part of a list; exported as PathID is.
type PageQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"100" doc:"how many at most, default 20"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the page before"`
}

// idPage asks for a part of a list that belongs to the thing with the id.
type idPage struct {
	PathID
	PageQuery
}

// A limit of 0 means the default; the service checks the cursor.
func (p PageQuery) page() dibs.Page { return dibs.Page{Limit: p.Limit, Cursor: p.Cursor} }

// The handlers answer with views of what the services return. The functions below
// turn one into the other, and pass errors on.

// itself is the view of a value that is shown as it is.
func itself[T any](v *T) T { return *v }

// viewOf shows the value that a call returned.
func viewOf[T, V any](view func(*T) V) func(*T, error) (V, error) {
	return func(v *T, err error) (shown V, _ error) {
		if err != nil {
			return shown, err
		}
		return view(v), nil
	}
}

// listOf shows the part of a list that a call returned. Without items, the list is
// empty and not null.
func listOf[T, V any](view func(*T) V) func(dibs.List[T], error) (api.ListView[V], error) {
	return func(l dibs.List[T], err error) (api.ListView[V], error) {
		v := api.ListView[V]{Items: make([]V, len(l.Items)), NextCursor: l.NextCursor}
		for i := range l.Items {
			v.Items[i] = view(&l.Items[i])
		}
		return v, err
	}
}

// byID is the handler of a route that needs nothing but the id in its path.
func byID[O any](do func(ctx context.Context, id string) (O, error)) func(context.Context, *call, *PathID) (O, error) {
	return func(ctx context.Context, _ *call, in *PathID) (O, error) { return do(ctx, in.ID) }
}

// actionByID is byID for a route that changes something and has no parameters.
func actionByID[O any](do func(ctx context.Context, id string) (O, error)) func(context.Context, *call, *PathID, *noBody) (O, error) {
	return func(ctx context.Context, _ *call, in *PathID, _ *noBody) (O, error) { return do(ctx, in.ID) }
}
