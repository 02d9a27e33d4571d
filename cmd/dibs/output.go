package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The forms of a verb's output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// addOutput gives a verb --output.
func addOutput(cmd *cobra.Command, to *string) {
	v := oneOf{to: to, words: []string{outputTable, outputJSON}}
	*to = outputTable
	cmd.Flags().Var(&v, "output", "How the answer looks: table or json")
}

// oneOf is a flag that takes one of some words.
type oneOf struct {
	to    *string
	words []string
}

// Set implements pflag.Value.
func (v *oneOf) Set(text string) error {
	for _, w := range v.words {
		if text == w {
			*v.to = text
			return nil
		}
	}
	return fmt.Errorf("must be %s", strings.Join(v.words, " or "))
}

// String implements pflag.Value.
func (v *oneOf) String() string { return *v.to }

// Type implements pflag.Value.
func (v *oneOf) Type() string { return "FORM" }

// show writes a value as JSON, or its table.
func show(cmd *cobra.Command, output string, value any, t *table) error {
	if output == outputJSON {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(value)
	}
	return t.write(cmd.OutOrStdout())
}

// table is rows of text under a head.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write aligns the columns.
func (t *table) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if t.head != nil {
		fmt.Fprintln(w, strings.Join(t.head, "\t"))
	}
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

// isTerminal reports whether people look at what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint is how a text is set apart; its zero value leaves texts alone.
type paint struct{ on bool }

// paintFor paints on terminals, unless NO_COLOR says no (no-color.org).
func paintFor(w io.Writer) paint {
	return paint{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p paint) bold(s string) string  { return p.wrap("1", s) }
func (p paint) dim(s string) string   { return p.wrap("2", s) }
func (p paint) green(s string) string { return p.wrap("32", s) }

func (p paint) wrap(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
