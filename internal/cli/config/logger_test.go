package config

import (
	"bytes"
	"strings"
	"testing"
)

func TestLogger(t *testing.T) {
	for _, c := range []struct{ format, level, want string }{
		{"text", "warn", "level=WARN msg=second a=1"},
		{"json", "warn", `"level":"WARN","msg":"second","a":1}`},
	} {
		var out bytes.Buffer
		log, err := (&Config{LogFormat: c.format, LogLevel: c.level}).Logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("first")
		log.Warn("second", "a", 1)
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.format, got)
		}
	}
	if _, err := (&Config{LogLevel: "loud"}).Logger(nil); err == nil {
		t.Error("a level that there is not is taken")
	}
}
