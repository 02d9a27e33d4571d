package httpapi

import "github.com/dibs-dev/dibs"

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

func (p PageQuery) page() dibs.Page { return dibs.Page{Limit: p.Limit, Cursor: p.Cursor} }

// listOf makes a page of views.
func listOf[T, V any](l dibs.List[T], view func(*T) V) dibs.ListView[V] {
	v := dibs.ListView[V]{Items: make([]V, len(l.Items)), NextCursor: l.NextCursor}
	for i := range l.Items {
		v.Items[i] = view(&l.Items[i])
	}
	return v
}

// itself is the view of what is shown as it is.
func itself[T any](v *T) T { return *v }

// viewOf is the view of what a call returned, unless it failed.
func viewOf[T, V any](view func(*T) V) func(*T, error) (V, error) {
	return func(v *T, err error) (V, error) {
		if err != nil {
			var none V
			return none, err
		}
		return view(v), nil
	}
}
