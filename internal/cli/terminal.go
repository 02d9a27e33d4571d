package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Paint colours text. Its zero value leaves text as it is.
type Paint struct{ on bool }

// PaintFor returns a Paint that colours on terminals, unless the user asks for none
// by NO_COLOR (no-color.org).
func PaintFor(w io.Writer) Paint {
	return Paint{IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Bold sets a text in bold.
func (p Paint) Bold(s string) string { return p.wrap("1", s) }

// Dim makes a text less bright.
func (p Paint) Dim(s string) string { return p.wrap("2", s) }

// Green colours a text green.
func (p Paint) Green(s string) string { return p.wrap("32", s) }

func (p Paint) wrap(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
