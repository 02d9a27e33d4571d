package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// Table is rows of text in aligned columns, as people read an answer.
type Table struct {
	// Caption and Foot are lines above and below; empty for none.
	Caption, Foot string
	// Head names the columns; nil for none.
	Head []string
	rows [][]string
}

// NewTable returns an empty table with a head.
func NewTable(head ...string) *Table { return &Table{Head: head} }

// Facts returns a table of facts, a line for each: its name, then its value.
func Facts(pairs ...any) *Table {
	t := NewTable()
	for pair := range slices.Chunk(pairs, 2) {
		t.Add(pair...)
	}
	return t
}

// Add appends a row. A time.Time is shown by Moment, an int or int64 by Thousands, anything
// else as fmt.Sprint shows it.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = text(c)
	}
	t.rows = append(t.rows, row)
}

// Field appends a row of a name and a value, unless the value shows as nothing.
func (t *Table) Field(name string, value any) {
	if shown := text(value); shown != "" {
		t.rows = append(t.rows, []string{name, shown})
	}
}

// Len returns the number of rows, without the head.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the table with its columns aligned.
func (t *Table) Write(out io.Writer) error {
	if t.Caption != "" {
		fmt.Fprintln(out, t.Caption)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if t.Head != nil {
		fmt.Fprintln(w, strings.Join(t.Head, "\t"))
	}
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	if err := w.Flush(); err != nil || t.Foot == "" {
		return err
	}
	_, err := fmt.Fprintln(out, t.Foot)
	return err
}

// TableFunc makes a function that writes a table of its own into one that Show
// takes.
type TableFunc func(io.Writer) error

// Write calls the function.
func (f TableFunc) Write(out io.Writer) error { return f(out) }

func text(cell any) string {
	switch v := cell.(type) {
	case time.Time:
		return Moment(v)
	case int:
		return Thousands(int64(v))
	case int64:
		return Thousands(v)
	}
	return Plain(fmt.Sprint(cell))
}

// Thousands shows a number as people read it, 5,000.
func Thousands(n int64) string { return humanize.Comma(n) }

// Moment shows a time in UTC, or a dash for none.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// OrDash returns a dash in place of an empty text, so that the columns of a table
// can be told apart.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
