package cli

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	table := NewTable("NAME", "N", "AT")
	table.Caption, table.Foot = "above:", "below"
	table.Add("a long name", int64(7), time.Date(2026, 12, 1, 12, 0, 0, 0, time.FixedZone("", 8*3600)))
	table.Add("b", 3*time.Second, time.Time{})
	table.Field("empty", "")
	table.Field("zero", 0)
	table.Add("many", int64(-1234567))
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = `above:
NAME         N   AT
a long name  7   2026-12-01T04:00:00Z
b            3s  -
zero         0
many         -1,234,567
below
`
	if out.String() != want || table.Len() != 4 {
		t.Errorf("%d rows:\n%swant\n%s", table.Len(), &out, want)
	}
	if Count(1, "unit") != "1 unit" || Count(0, "unit") != "0 units" || Count(5000, "code") != "5,000 codes" {
		t.Error("Count")
	}
	if OrDash("") != "-" || OrDash("x") != "x" {
		t.Error("OrDash")
	}
}

// room is a writer that takes so many bytes.
type room int

func (r *room) Write(b []byte) (int, error) {
	if *r -= room(len(b)); *r < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// TestTableFails: a table that could not be written is an error.
func TestTableFails(t *testing.T) {
	table := NewTable("NAME")
	table.Foot = "below"
	for bytes, want := range map[room]error{0: io.ErrShortWrite, room(len("NAME\n")): io.ErrShortWrite, room(len("NAME\nbelow\n")): nil} {
		if err := table.Write(&bytes); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
