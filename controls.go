package dibs

import (
	"strings"
	"unicode/utf8"
)

// IsControl reports whether a character can change how the text around it is shown,
// in place of being shown: the control characters of ASCII (C0, DEL) and of Latin-1
// (C1, which some terminals obey as they obey ESC), the marks that turn the direction of
// text (UAX #9), and the separators of lines and paragraphs. Text with such characters
// can rewrite a terminal, or make a row of a list look like two.
func IsControl(r rune) bool {
	switch {
	case r < ' ', 0x7f <= r && r <= 0x9f: // C0, DEL, C1
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f: // ALM, LRM, RLM
		return true
	case 0x2028 <= r && r <= 0x202e: // separators, embeddings and overrides
		return true
	case 0x2066 <= r && r <= 0x2069: // isolates
		return true
	}
	return false
}

// isBreak reports whether a control character is one that prose has.
func isBreak(r rune) bool { return r == '\n' || r == '\t' || r == '\r' }

var hasControls = Text{"must not have control characters, nor marks that turn the direction of text", "不能包含控制字符或改变文字方向的字符"}

// proseFault is TextFault for text that may have several lines.
func proseFault(field, s string, required bool, most int) []Fault {
	return textFault(field, s, required, most, func(r rune) bool { return IsControl(r) && !isBreak(r) })
}

// TextFault reports a text of one line that is empty (when required), too long, or has
// a character for which IsControl is true.
func TextFault(field, s string, required bool, most int) []Fault {
	return textFault(field, s, required, most, IsControl)
}

func textFault(field, s string, required bool, most int, refused func(rune) bool) []Fault {
	n := utf8.RuneCountInString(s)
	switch {
	case required && n == 0:
		return []Fault{{field, Text{"is required", "必填"}}}
	case n > most:
		return []Fault{{field, Textf("must be at most %d characters", "最多 %d 个字符", most)}}
	case !utf8.ValidString(s):
		return []Fault{{field, Text{"must be valid UTF-8", "必须是有效的 UTF-8"}}}
	}
	return unless(!strings.ContainsFunc(s, refused), field, hasControls)
}
