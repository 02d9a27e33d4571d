package dibs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Text that people write cannot rewrite a terminal or forge a row of a list: control
// characters of ASCII and Latin-1, and those that turn its direction, are refused.
func TestTextHasNoControls(t *testing.T) {
	units := int64(1)
	for what, text := range map[string]string{
		"a row":      "Phone\n2026-11-22T10:00:00Z  boss  admin",
		"ESC":        "Phone\x1b[2J",
		"CSI of C1":  "Phone\u009b2J",
		"DEL":        "Phone\x7f",
		"override":   "Phone \u202egpj.exe",
		"isolate":    "Phone \u2066x\u2069",
		"mark":       "Phone \u200fx",
		"line break": "Phone\u2028x",
	} {
		spec := CampaignSpec{Kind: Sale, Title: text, Comment: "c", StartsAt: time.Unix(1, 0), EndsAt: time.Unix(2, 0), Stock: StockSpec{Units: &units}}
		if fields := faultyFields(spec.Campaign(time.Unix(0, 0))); !slices.Equal(fields, []string{"/title"}) {
			t.Errorf("%s in a title: faults of %q", what, fields)
		}
		p := ProductSpec{ID: "p", Name: text}
		if fields := faultyFields(p.Product(time.Unix(0, 0))); !slices.Equal(fields, []string{"/name"}) {
			t.Errorf("%s in a name: faults of %q", what, fields)
		}
		if fs := TextFault("/ref", text, true, MaxRefLen); len(fs) != 1 {
			t.Errorf("%s in a reference: %v", what, fs)
		}
		prose := strings.ReplaceAll(text, "\n", "")
		if fs := proseFault("/comment", prose, false, 100); (len(fs) == 1) != (prose == text) {
			t.Errorf("%s in prose: %v", what, fs)
		}
	}
	if fs := proseFault("/comment", "Two lines,\n\ta tab; 中文，日本語 עברית 👍🏽", true, 100); fs != nil {
		t.Errorf("prose: %v", fs)
	}
	if fs := TextFault("/title", "手机 · עברית · 👍🏽", true, 100); fs != nil {
		t.Errorf("a title: %v", fs)
	}
}

// faultyFields returns the fields that an error of bad input names.
func faultyFields[T any](_ T, err error) (fields []string) {
	var e *Error
	if errors.As(err, &e) {
		for _, f := range e.Faults {
			fields = append(fields, f.Field)
		}
	}
	return fields
}
