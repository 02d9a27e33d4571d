package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/dibs-dev/dibs"
)

// Plain returns a text as a terminal may show it: each character that would move the
// cursor, begin a row or turn the direction of text is shown by its escape, as in
// \x1b and \u202e. The text may come from clients, and from before such characters were
// refused.
func Plain(text string) string {
	if !strings.ContainsFunc(text, dibs.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if dibs.IsControl(r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escape shows a control character as a string literal of Go does.
func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// plainJSON writes JSON with every control character beyond ASCII escaped, which
// encoding/json leaves as they are. In JSON such characters stand in strings alone, where
// their escapes mean the same. Each Write has whole characters, as those of an Encoder do.
type plainJSON struct{ to io.Writer }

// Write implements io.Writer.
func (p plainJSON) Write(b []byte) (int, error) {
	beyond := func(r rune) bool { return r >= 0x7f && dibs.IsControl(r) }
	if !bytes.ContainsFunc(b, beyond) {
		return p.to.Write(b)
	}
	var out bytes.Buffer
	for _, r := range string(b) {
		if beyond(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	if _, err := p.to.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}
