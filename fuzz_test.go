package dibs

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// FuzzClaimID: whatever stands in an address, what is read as a claim id is the id of one
// place, and that place's id is read as the same place.
func FuzzClaimID(f *testing.F) {
	ids := NewClaimIDs(plain{})
	for _, seed := range []string{"", "0000000000000000", "7K3M9QX2B4TD6RWA", "7k3m9qx2b4td6rwa", "oOiIlL0000000000", "7K3M9QX2B4TD6RW", "7K3M9QX2B4TD6RWU", "\xff\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p, err := ids.Decode(id)
		if err != nil {
			return
		}
		again := ids.Encode(p)
		if back, err := ids.Decode(again); err != nil || back != p {
			t.Errorf("%q is %v, whose id is %q: %v, %v", id, p, again, back, err)
		}
		people := strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(id))
		if people != again {
			t.Errorf("%q is read as %q", id, again)
		}
	})
}

// FuzzMark: a client's Last-Event-ID is a mark that is written as it was read, or none.
func FuzzMark(f *testing.F) {
	for _, seed := range []string{"", "3.1.200.1", "0.0.0.0", "9223372036854775807.65535.4294967295.3", "1.2.3", "1.2.3.4", "-1.0.0.0", "01.1.1.1", "+1.1.1.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := ParseMark(text)
		if !ok {
			return
		}
		// Zeros may lead each number.
		parts := strings.Split(text, ".")
		for i, part := range parts {
			parts[i] = cmp.Or(strings.TrimLeft(part, "0"), "0")
		}
		if back, ok := ParseMark(m.String()); !ok || back != m || m.Version < 0 || m.String() != strings.Join(parts, ".") {
			t.Errorf("%q is %v, then %v", text, m, back)
		}
	})
}

// FuzzPublicValue: of all texts that a public value may be without an announced format, each
// has a meaning of its own, and no second spelling is taken beside it: an operator who knows
// the value cannot choose among draws.
func FuzzPublicValue(f *testing.F) {
	for _, seed := range []string{"3888.6", "3,888.60", "3 888.6", "-0", "00ffa1b200ffa1b200ffa1b200ffa1b2", "3 14 15", "３８８８.6", "1e3", "", "0.10", "١٢٣", "\u00a0 1"} {
		f.Add(seed, "")
		f.Add(seed, "decimal:1")
	}
	f.Fuzz(func(t *testing.T, value, format string) {
		room := &RoomSpec{Mode: Lottery, PublicValue: "a value", PublicValueFormat: format}
		if formatProblem(format).EN != "" || (&PublicValueSpec{Value: value}).Faults(room) != nil {
			return
		}
		for i := range len(value) {
			if c := value[i]; !strings.ContainsRune("0123456789abcdef.- ", rune(c)) {
				t.Fatalf("%q is taken in the format %q", value, format)
			}
		}
		// Another way to write the same number.
		for _, other := range []string{"+" + value, "0" + value, value + " ", " " + value, value + ".", strings.ToUpper(value), strings.ReplaceAll(value, ".", ",")} {
			if format == "" && other != value && simplest(other) == value && (&PublicValueSpec{Value: other}).Faults(room) == nil {
				t.Errorf("%q is taken beside %q", other, value)
			}
		}
	})
}

// FuzzParseLimit: whatever a setting says, what is read as a limit is a valid one.
func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"20/s", "100/1m,burst=300", "1000/s,leaky,burst=200,wait=500ms", "1/0s", "9223372036854775807/1ns", "/", "1/s,burst=-1", "1/s,wait=1h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLimit("user", text)
		if (l == nil) == (err == nil) {
			t.Fatalf("%q is %v and %v", text, l, err)
		}
		if err == nil && (l.Rate < 1 || l.Every < 0 || l.Burst < 0 || len(l.Faults("")) > 0) {
			t.Errorf("%q is %+v", text, l)
		}
	})
}

// FuzzCampaignSpec: whatever describes a campaign, it is refused with faults that can be shown, or is a campaign within
// all bounds whose description can be written and read again as the same.
func FuzzCampaignSpec(f *testing.F) {
	const window = `"starts_at":"2026-12-01T04:00:00Z","ends_at":"2026-12-01T14:00:00+08:00"`
	for _, seed := range []string{
		`{"kind":"sale","title":"T","starts_at":"2026-12-01T04:00:00Z","ends_at":"2026-12-01T05:00:00Z","stock":{"units":5}}`,
		`{"id":"c","kind":"coupon","title":"T","starts_at":"2026-12-01T04:00:00Z","ends_at":"2026-12-01T05:00:00Z","stock":{"items":["A","B"]},"shards":2,"limit":2}`,
		`{"kind":"sale","title":"T",` + window + `,"stock":{"units":9223372036854775807}}`,
		`{"kind":"sale","title":"T",` + window + `,"stock":{"units":5},"price":{"amount":-1,"currency":"cny"}}`,
		`{"kind":"redpacket","title":"T","starts_at":"2026-12-01T04:00:00Z","ends_at":"2026-12-01T05:00:00Z","stock":{"redpacket":{"total":{"amount":100,"currency":"CNY"},"shares":3}}}`,
		`{"kind":"sale","title":"\u202e","starts_at":"9999-12-31T23:59:59+00:00","ends_at":"0000-01-01T00:00:00Z","stock":{"codes":{"pattern":"XX-99","count":7}}}`,
		`{"gate":{"room":{"mode":"lottery","registration_closes_at":"2026-12-01T03:00:00Z","winners":2},"ticket":{"lifetime":"1m","work_bits":8},"limits":[{"per":"user","rate":5}]}}`,
		`{"tiers":[{"below":5,"price":{"amount":1,"currency":"CNY"}}],"pay_within":"0s","valid_for":"-1h","limit_per_product":0}`, `{}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s CampaignSpec
		if json.Unmarshal(raw, &s) != nil {
			return
		}
		c, err := s.Campaign(now)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason != InvalidRequest || len(e.Faults) == 0 {
				t.Fatalf("%s: %v", raw, err)
			}
			for _, fault := range e.Faults {
				if fault.Field == "" || fault.Field[0] != '/' || fault.Problem.EN == "" || fault.Problem.ZH == "" {
					t.Errorf("%s: %+v", raw, fault)
				}
			}
			return
		}
		if c.Stock.Total < 0 || c.Stock.Total > MaxStock || c.LimitPerUser < 0 || c.Shards < 1 || !c.StartsAt.Before(c.EndsAt) || !IsID(c.ID) {
			t.Errorf("%s is %+v", raw, c)
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%s is taken, and cannot be shown: %v", raw, err)
		}
		var again CampaignSpec
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%s cannot be read again: %v", written, err)
		}
		if _, err := again.Campaign(now); err != nil {
			t.Errorf("%s is taken, and %s is not: %v", raw, written, err)
		}
	})
}
