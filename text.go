package dibs

import "fmt"

// Text is a sentence for people, in the two languages dibs speaks.
type Text struct {
	EN string
	ZH string
}

// Textf formats both languages with the same arguments.
// A language that needs another order uses explicit indexes (%[2]d).
func Textf(en, zh string, args ...any) Text {
	return Text{EN: fmt.Sprintf(en, args...), ZH: fmt.Sprintf(zh, args...)}
}

// In returns the sentence in Chinese when zh is set, else in English.
func (t Text) In(zh bool) string {
	if zh && t.ZH != "" {
		return t.ZH
	}
	return t.EN
}
