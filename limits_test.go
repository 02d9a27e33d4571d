package dibs

import (
	"strings"
	"testing"
	"time"
)

func TestLimitFaults(t *testing.T) {
	good := LimitSpec{Per: "user", Rate: 5}
	for _, c := range []struct {
		what   string
		change func(*LimitSpec)
		fields string
	}{
		{"as it should be", func(*LimitSpec) {}, ""},
		{"leaky", func(l *LimitSpec) { l.Bucket, l.MaxWait, l.Burst = LimitLeaky, Duration(time.Second), 9 }, ""},
		{"a rate of zero", func(l *LimitSpec) { l.Rate = 0 }, "/l/0/rate"},
		{"a negative rate", func(l *LimitSpec) { l.Rate = -1 }, "/l/0/rate"},
		{"a rate beyond all", func(l *LimitSpec) { l.Rate = 1 << 40 }, "/l/0/rate"},
		{"of nobody", func(l *LimitSpec) { l.Per = "server" }, "/l/0/per"},
		{"another bucket", func(l *LimitSpec) { l.Bucket = "bath" }, "/l/0/bucket"},
		{"no time", func(l *LimitSpec) { l.Every = -1 }, "/l/0/every"},
		{"for ever", func(l *LimitSpec) { l.Every = Duration(48 * time.Hour) }, "/l/0/every"},
		{"a burst below nothing", func(l *LimitSpec) { l.Burst = -1 }, "/l/0/burst"},
		{"a wait that nobody has", func(l *LimitSpec) { l.Bucket, l.MaxWait = LimitLeaky, Duration(time.Hour) }, "/l/0/max_wait"},
		{"a wait in a token bucket", func(l *LimitSpec) { l.MaxWait = Duration(time.Second) }, "/l/0/max_wait"},
		{"all of it", func(l *LimitSpec) { l.Per, l.Rate, l.Burst = "", 0, -1 }, "/l/0/per /l/0/rate /l/0/burst"},
	} {
		l := good
		c.change(&l)
		var fields []string
		for _, f := range limitFaults("/l", []LimitSpec{l}) {
			fields = append(fields, f.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: faults of %q, want %q", c.what, got, c.fields)
		}
	}
	if fs := limitFaults("/l", make([]LimitSpec, maxLimits+1)); len(fs) != 1 || fs[0].Field != "/l" {
		t.Errorf("too many: %v", fs)
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]LimitSpec{
		"20/s":                              {Rate: 20, Every: Duration(time.Second)},
		"100/1m,burst=300":                  {Rate: 100, Every: Duration(time.Minute), Burst: 300},
		"1000/s,leaky,burst=200,wait=500ms": {Rate: 1000, Every: Duration(time.Second), Bucket: LimitLeaky, Burst: 200, MaxWait: Duration(500 * time.Millisecond)},
		"1/500ms,token":                     {Rate: 1, Every: Duration(500 * time.Millisecond), Bucket: LimitToken},
		"0/s":                               {}, "20": {}, "20/": {}, "x/s": {}, "20/s,burst": {}, "20/s,burst=0": {}, "20/s,wait=1s": {},
		"20/s,leaky,wait=0s": {}, "20/s,leaky,wait=1h": {}, "20/0s": {}, "20/-1s": {}, "20/s,more": {}, "": {}, "9/s,every=0s": {},
	} {
		got, err := ParseLimit("user", text)
		want.Per = "user"
		switch {
		case want.Rate == 0:
			if err == nil {
				t.Errorf("%q is taken: %+v", text, got)
			}
		case err != nil || *got != want:
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
