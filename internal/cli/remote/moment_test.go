package remote

import (
	"testing"
	"time"
)

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 1_234_567, time.FixedZone("", 8*3600))
	for text, want := range map[string]string{
		"now": "2026-12-01T04:00:00.001Z", "+1h": "2026-12-01T05:00:00.001Z", "-90m": "2026-12-01T02:30:00.001Z", "2h": "2026-12-01T06:00:00.001Z",
		"2027-01-01T00:00:00+08:00": "2027-01-01T00:00:00+08:00", "": "", "noon": "", "2027-01-01": "", "+1": "",
	} {
		at, err := parseMoment("--starts", text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%q is %s", text, at)
			}
			continue
		}
		if err != nil || at.Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %s, want %s: %v", text, at, want, err)
		}
	}
}

// TestReadMoments leaves alone what no flag gives.
func TestReadMoments(t *testing.T) {
	now := time.Now()
	var since, until time.Time
	if err := readMoments(now, momentFlag{"--since", "", &since}, momentFlag{"--until", "+1s", &until}); err != nil || !since.IsZero() || until.Before(now) {
		t.Errorf("%s, %s, %v", since, until, err)
	}
	if err := readMoments(now, momentFlag{"--since", "noon", &since}); err == nil || err.Error() != `--since must be a time such as 2026-12-01T04:00:00Z, now, or hours and minutes from now such as -1h30m, not "noon"` {
		t.Errorf("%v", err)
	}
	if err := readMoments(now, momentFlag{"--since", "24h", &since}); err == nil || err.Error() != `--since 24h lies ahead, and nothing has happened since then: -1h is an hour ago` {
		t.Errorf("a time ahead: %v", err)
	}
}
