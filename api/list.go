package api

// ListView is a page of views.
type ListView[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}
