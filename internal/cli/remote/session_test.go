package remote

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/api"
)

// TestExplain: the error of a call says what to do, or names lines and fields.
func TestExplain(t *testing.T) {
	refusal := func(faults ...api.ProblemFault) error {
		return &client.Error{Problem: api.Problem{Reason: "invalid_request", Detail: "summed up", Errors: faults}}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("x: %w", syscall.ECONNREFUSED), "no server answers at http://h: start one with dibs dev or dibs serve, or name another --url"},
		{&dibs.Error{Reason: dibs.Unauthenticated, Detail: dibs.Text{EN: "no"}}, "the server at http://h does not take this admin key: "},
		{refusal(api.ProblemFault{Pointer: "/lines/3", Detail: "is no user"}, api.ProblemFault{Pointer: "/gate/room", Detail: "is wrong"}),
			"invalid_request: line 3 is no user; gate/room is wrong"},
		{io.EOF, "EOF"},
	} {
		err := Explain("http://h", c.err)
		if got := err.Error(); len(got) < len(c.want) || got[:len(c.want)] != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	if got := Explain("http://h", &dibs.Error{Reason: dibs.Unauthenticated}).Error(); !strings.Contains(got, "administrators have one of their own (admin_listen)") {
		t.Error(got)
	}
	if Explain("http://h", nil) != nil {
		t.Error("no error is explained")
	}
}

// TestAll reads pages until the limit or the end, and no page too many.
func TestAll(t *testing.T) {
	const size = 2*dibs.MaxPage + 7
	for _, c := range []struct{ limit, want, calls int }{{0, size, 3}, {1, 1, 1}, {dibs.MaxPage, dibs.MaxPage, 1}, {dibs.MaxPage + 1, dibs.MaxPage + 1, 2}, {size + 9, size, 3}} {
		calls := 0
		items, err := all(c.limit, func(p dibs.Page) (l api.ListView[int], err error) {
			calls++
			from := 0
			if p.Cursor != "" {
				if from, err = strconv.Atoi(p.Cursor); err != nil {
					return l, err
				}
			}
			for i := from; i < min(from+p.Limit, size); i++ {
				l.Items = append(l.Items, i)
			}
			if end := from + p.Limit; end < size {
				l.NextCursor = strconv.Itoa(end)
			}
			return l, nil
		})
		if err != nil || len(items) != c.want || calls != c.calls || !slices.IsSorted(items) {
			t.Errorf("limit %d: %d items after %d calls, %v; want %d after %d", c.limit, len(items), calls, err, c.want, c.calls)
		}
	}
	if items, err := all(0, func(dibs.Page) (api.ListView[int], error) { return api.ListView[int]{}, nil }); items == nil || err != nil {
		t.Errorf("an empty list is %v, %v", items, err)
	}
	if _, err := all(0, func(dibs.Page) (api.ListView[int], error) { return api.ListView[int]{}, io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}
