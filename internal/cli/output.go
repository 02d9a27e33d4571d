package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The forms of an answer.
const (
	OutputTable = "table"
	OutputJSON  = "json"
)

// outputFlag is the flag that chooses the form.
const outputFlag = "output"

// WithOutput adds --output to a verb, and returns the verb.
func WithOutput(cmd *cobra.Command) *cobra.Command {
	form := OutputTable
	cmd.Flags().Var(OneOf(&form, OutputTable, OutputJSON), outputFlag, "The form of the answer: table or json")
	return cmd
}

// WantsJSON reports whether the user asked a verb for JSON.
func WantsJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup(outputFlag)
	return f != nil && f.Value.String() == OutputJSON
}

// Show writes a verb's answer in the form that the user asked for: value as one
// JSON document, or its table.
func Show(cmd *cobra.Command, value any, table interface{ Write(io.Writer) error }) error {
	if !WantsJSON(cmd) {
		return table.Write(cmd.OutOrStdout())
	}
	enc := JSONLines(cmd)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// Line is an answer of one line.
type Line string

// Write writes it.
func (l Line) Write(out io.Writer) error {
	_, err := fmt.Fprintln(out, string(l))
	return err
}

// JSONLines returns an encoder that writes each value on a line of its own, for
// verbs that show values as they come.
func JSONLines(cmd *cobra.Command) *json.Encoder {
	enc := json.NewEncoder(plainJSON{cmd.OutOrStdout()})
	// An address in an answer keeps its & as it is.
	enc.SetEscapeHTML(false)
	return enc
}

// OneOf returns a flag that takes one of some words. The word that to points at
// is the default.
func OneOf[T ~string](to *T, words ...T) pflag.Value { return &choice[T]{to, words} }

type choice[T ~string] struct {
	to    *T
	words []T
}

// Set implements pflag.Value.
func (c *choice[T]) Set(text string) error {
	if !slices.Contains(c.words, T(text)) {
		return &wordError{text, c.Words()}
	}
	*c.to = T(text)
	return nil
}

// Words are what the flag takes.
func (c *choice[T]) Words() []string {
	words := make([]string, len(c.words))
	for i, w := range c.words {
		words[i] = string(w)
	}
	return words
}

// wordError is a word that is none of some.
type wordError struct {
	text  string
	words []string
}

func (e *wordError) Error() string {
	return fmt.Sprintf("must be %s, not %q%s", Words(e.words), e.text, Meant(e.text, e.words, ""))
}

// String implements pflag.Value.
func (c *choice[T]) String() string { return string(*c.to) }

// Type implements pflag.Value.
func (c *choice[T]) Type() string { return "FORM" }
