package settings

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/dibs-dev/dibs/internal/logins"
)

// Values are the effective values of all settings, in the struct's order.
type Values []Value

// Of returns the value of a key, nil when there is no such setting.
func (vs Values) Of(key string) *Value {
	for i := range vs {
		if vs[i].Key == key {
			return &vs[i]
		}
	}
	return nil
}

// FileOf returns the file that a variable names for a setting; empty for a value of another
// source.
func (vs Values) FileOf(key string) string {
	if v := vs.Of(key); v != nil {
		return v.File
	}
	return ""
}

// ShownText is the value as it may be shown: secrets are masked, with their
// length, and an empty value says what it means.
func (v *Value) ShownText() string {
	switch {
	case v.Text == "" && v.Shown != "":
		return v.Shown
	case v.Secret && v.Text != "":
		return fmt.Sprintf("******** (%d bytes)", len(v.Text))
	case strings.Contains(v.Text, "://") && v.isList():
		words := strings.Fields(v.Text)
		for i := range words {
			words[i] = withoutPassword(words[i])
		}
		return strings.Join(words, " ")
	case strings.Contains(v.Text, "://"):
		return withoutPassword(v.Text)
	}
	return v.Text
}

// Markdown is the reference of a struct's settings as a table.
func Markdown(of any) string {
	var b strings.Builder
	b.WriteString("| key | flag | environment | default | limits | what it does |\n|---|---|---|---|---|---|\n")
	for _, s := range Describe(of) {
		cells := []string{code(s.Key), code("--" + s.Flag()), code(s.Env()), code(cmp.Or(s.Default, s.Shown)), s.Limits(), s.Doc}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// withoutPassword masks the secrets of an address. One that cannot be read is masked
// altogether.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "********"
	}
	return logins.Masked(u)
}
