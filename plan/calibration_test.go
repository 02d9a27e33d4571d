package plan

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestCalibrationKept reads what was written.
func TestCalibrationKept(t *testing.T) {
	c := Default()
	c.Node.GrantedUS = 12.5
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b, c.MeasuredAt.Add(time.Hour))
	if err != nil || got.Node.GrantedUS != 12.5 || got.Engines[Redis].ClaimUS != c.Engines[Redis].ClaimUS || got.Source != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestCalibrationRefused names what is wrong with a calibration, and what to do.
func TestCalibrationRefused(t *testing.T) {
	measured := Default().MeasuredAt
	for want, change := range map[string]func(text string) (string, time.Time){
		"more than a year": func(s string) (string, time.Time) { return s, measured.Add(stale + time.Hour) },
		"not come yet":     func(s string) (string, time.Time) { return s, measured.Add(-48 * time.Hour) },
		"format 2": func(s string) (string, time.Time) {
			return strings.Replace(s, `"format": 1`, `"format": 2`, 1), measured
		},
		"cannot be read": func(s string) (string, time.Time) { return s[:len(s)/2], measured },
		"unknown field":  func(s string) (string, time.Time) { return strings.Replace(s, "granted_us", "grants", 1), measured },
		"0 for node.refused_us": func(s string) (string, time.Time) {
			return strings.Replace(s, "refused_us", "granted_us", 1), measured
		},
		"no costs of the engine": func(s string) (string, time.Time) {
			return strings.Replace(s, `"engines": {`, `"engines": { "other": null,`, 1), measured
		},
		"for client.request_us": func(s string) (string, time.Time) {
			return strings.Replace(s, `"client": { "request_us": `, `"client": { "request_us": -1`, 1), measured
		},
	} {
		text, now := change(string(defaultText))
		_, err := Read(strings.NewReader(text), now)
		if !errors.Is(err, ErrCalibration) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--measure") {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
