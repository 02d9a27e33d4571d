package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// The forms of a verb's output.
const (
	OutputTable = "table"
	OutputJSON  = "json"
)

// AddOutput gives a verb --output.
func AddOutput(cmd *cobra.Command, to *string) {
	*to = OutputTable
	cmd.Flags().Var(OneOf(to, OutputTable, OutputJSON), "output", "How the answer looks: table or json")
}

// OneOf is a flag that takes one of some words.
func OneOf(to *string, words ...string) pflag.Value { return &choice{to, words} }

type choice struct {
	to    *string
	words []string
}

// Set implements pflag.Value.
func (v *choice) Set(text string) error {
	for _, w := range v.words {
		if text == w {
			*v.to = text
			return nil
		}
	}
	return fmt.Errorf("must be %s", strings.Join(v.words, " or "))
}

// String implements pflag.Value.
func (v *choice) String() string { return *v.to }

// Type implements pflag.Value.
func (v *choice) Type() string { return "FORM" }

// Show writes a value as JSON, or its table.
func Show(cmd *cobra.Command, output string, value any, t *Table) error {
	if output == OutputJSON {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(value)
	}
	return t.Write(cmd.OutOrStdout())
}

// Table is rows of text under a head.
type Table struct {
	Head []string
	Rows [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write aligns the columns.
func (t *Table) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if t.Head != nil {
		fmt.Fprintln(w, strings.Join(t.Head, "\t"))
	}
	for _, r := range t.Rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

// IsTerminal reports whether people look at what is written.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint is how a text is set apart; its zero value leaves texts alone.
type paint struct{ on bool }

// PaintFor paints on terminals, unless NO_COLOR says no (no-color.org).
func PaintFor(w io.Writer) paint {
	return paint{IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p paint) Bold(s string) string  { return p.wrap("1", s) }
func (p paint) Dim(s string) string   { return p.wrap("2", s) }
func (p paint) Green(s string) string { return p.wrap("32", s) }

func (p paint) wrap(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Moment shows a time, or a dash for none.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
