package dibs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LimitSpec bounds how often claims are made: by a token bucket, or by a leaky
// one, a queue that drains at a constant rate.
type LimitSpec struct {
	// Per is whose claims are counted together.
	Per string `json:"per" doc:"whose claims are counted together" enum:"user,address,device,campaign"`
	// Bucket is LimitToken or LimitLeaky; empty for LimitToken.
	Bucket string `json:"bucket,omitempty" doc:"token: what was not used is saved up, burst at most; leaky: claims queue, and drain evenly" enum:"token,leaky"`
	// Rate is how many claims there may be in each Every; an Every of 0 is a second.
	Rate  int64    `json:"rate" doc:"claims in each period" minimum:"1" maximum:"10000000"`
	Every Duration `json:"every,omitempty" doc:"the period, default 1s"`
	// Burst is how many claims a token bucket takes at once, or wait in a leaky one
	// at most; 0 is Rate.
	Burst int64 `json:"burst,omitempty" doc:"token: claims at once; leaky: claims that wait, at most; default: rate"`
	// MaxWait is how long a claim waits in a leaky bucket at most; 0 is a second.
	MaxWait Duration `json:"max_wait,omitempty" doc:"leaky: the longest wait, default 1s"`
}

// The kinds of buckets.
const (
	LimitToken = "token"
	LimitLeaky = "leaky"
)

// The bounds of limits.
const (
	maxLimits     = 8
	maxLimitRate  = 10_000_000
	maxLimitEvery = 24 * time.Hour
	maxLimitWait  = 10 * time.Second
)

// WithDefaults returns the limit with every zero field set.
func (l LimitSpec) WithDefaults() LimitSpec {
	l.Bucket = cmp.Or(l.Bucket, LimitToken)
	l.Every = cmp.Or(l.Every, Duration(time.Second))
	l.Burst = cmp.Or(l.Burst, l.Rate)
	if l.Bucket == LimitLeaky {
		l.MaxWait = cmp.Or(l.MaxWait, Duration(time.Second))
	}
	return l
}

// Faults lists what is wrong with a limit; field is where it stands.
func (l *LimitSpec) Faults(field string) []Fault {
	d, wait := l.WithDefaults(), time.Duration(l.MaxWait)
	return slices.Concat(
		unless(d.Bucket == LimitToken || d.Bucket == LimitLeaky, field+"/bucket", Text{"must be token or leaky", "必须是 token 或 leaky"}),
		unless(l.Rate >= 1 && l.Rate <= maxLimitRate, field+"/rate",
			Textf("must be from 1 to %d: pause the campaign to let nobody claim", "必须在 1 到 %d 之间；如需禁止领取请暂停活动", maxLimitRate)),
		within(field+"/every", d.Every.Std(), time.Millisecond, maxLimitEvery),
		zeroOrWithin(field+"/burst", l.Burst, 1, maxLimitRate),
		unless(wait >= 0 && wait <= maxLimitWait, field+"/max_wait",
			Textf("must be from 1ms to %s", "必须在 1ms 到 %s 之间", maxLimitWait)),
		unless(wait == 0 || d.Bucket == LimitLeaky, field+"/max_wait",
			Text{"is for leaky buckets: nobody waits in a token bucket", "仅用于 leaky 桶"}),
	)
}

// limitPers are what a campaign's limit may be per.
var limitPers = map[string]bool{"user": true, "address": true, "device": true, "campaign": true}

// limitFaults lists what is wrong with a campaign's limits.
func limitFaults(field string, limits []LimitSpec) []Fault {
	if len(limits) > maxLimits {
		return []Fault{{field, Textf("must be at most %d", "最多 %d 个", maxLimits)}}
	}
	var fs []Fault
	for i := range limits {
		at := field + "/" + strconv.Itoa(i)
		fs = append(fs, unless(limitPers[limits[i].Per], at+"/per",
			Text{"must be user, address, device or campaign", "必须是 user、address、device 或 campaign"})...)
		fs = append(fs, limits[i].Faults(at)...)
	}
	return fs
}

// ParseLimit reads a limit as a setting has it: `20/s`, `100/1m,burst=300`, or
// `1000/s,leaky,burst=200,wait=500ms`. The error says what is wrong.
func ParseLimit(per, text string) (*LimitSpec, error) {
	form := fmt.Errorf("must look like 20/s, 100/1m,burst=300 or 1000/s,leaky,burst=200,wait=500ms")
	words := strings.Split(text, ",")
	rate, every, ok := strings.Cut(words[0], "/")
	if !ok {
		return nil, form
	}
	l := &LimitSpec{Per: per}
	var err error
	if l.Rate, err = strconv.ParseInt(rate, 10, 64); err != nil {
		return nil, form
	}
	if every != "" && (every[0] < '0' || every[0] > '9') {
		every = "1" + every
	}
	for _, word := range append([]string{"every=" + every}, words[1:]...) {
		name, value, _ := strings.Cut(word, "=")
		var d time.Duration
		switch name {
		case LimitLeaky, LimitToken:
			l.Bucket = name
		case "burst":
			l.Burst, err = strconv.ParseInt(value, 10, 64)
			if err == nil && l.Burst < 1 {
				err = form
			}
		case "every", "wait":
			if d, err = time.ParseDuration(value); name == "wait" {
				l.MaxWait = Duration(d)
			} else {
				l.Every = Duration(d)
			}
			if err == nil && d <= 0 {
				err = form
			}
		default:
			err = form
		}
		if err != nil {
			return nil, form
		}
	}
	if fs := l.Faults(""); len(fs) > 0 {
		return nil, fmt.Errorf("%s %s", strings.TrimPrefix(fs[0].Field, "/"), fs[0].Problem.EN)
	}
	return l, nil
}
