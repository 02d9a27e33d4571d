package dibs

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// Every fault of a spec is named, all at once.
func TestSpecFaults(t *testing.T) {
	for _, c := range []struct{ name, change, fields string }{
		{"bad id", `"id":"a b"`, "/id"},
		{"long id", `"id":"` + strings.Repeat("a", 65) + `"`, "/id"},
		{"kind", `"kind":"gift"`, "/kind"},
		{"no title", `"title":""`, "/title"},
		{"long title", `"title":"` + strings.Repeat("秒", 201) + `"`, "/title"},
		{"long comment", `"comment":"` + strings.Repeat("a", 256) + `"`, "/comment"},
		{"window backwards", `"ends_at":"2026-12-01T04:00:00Z"`, "/ends_at"},
		{"window missing", `"starts_at":"0001-01-01T00:00:00Z"`, "/starts_at"},
		{"no stock", `"stock":{}`, "/stock"},
		{"two stocks", `"stock":{"units":1,"items":["a"]}`, "/stock"},
		{"no units", `"stock":{"units":0}`, "/stock/units"},
		{"many units", `"stock":{"units":1000000001}`, "/stock/units"},
		{"same items", `"stock":{"items":["A1","A2","A1"]}`, "/stock/items/2"},
		{"empty item", `"stock":{"items":["A1",""]}`, "/stock/items/1"},
		{"item with control", `"stock":{"items":["A\n1"]}`, "/stock/items/0"},
		{"codes count", `"stock":{"codes":{"count":0,"pattern":"XXXXXXXXXX"}}`, "/stock/codes/count"},
		{"codes pattern", `"stock":{"codes":{"count":5000,"pattern":"XX"}}`, "/stock/codes/pattern"},
		{"limit", `"limit_per_user":0`, "/limit_per_user"},
		{"limit high", `"limit_per_user":10001`, "/limit_per_user"},
		{"price", `"price":{"amount":-1,"currency":"CNY"}`, "/price/amount"},
		{"price over 2^53", `"price":{"amount":9007199254740992,"currency":"CNY"}`, "/price/amount"},
		{"currency", `"price":{"amount":1,"currency":"cny"}`, "/price/currency"},
		{"price times limit", `"limit_per_user":2,"price":{"amount":9007199254740991,"currency":"CNY"}`, "/price/amount"},
		{"pay zero", `"pay_within":"0s"`, "/pay_within"},
		{"pay negative", `"pay_within":"-1s"`, "/pay_within"},
		{"pay long", `"pay_within":"721h"`, "/pay_within"},
		{"pay for a coupon", `"kind":"coupon","pay_within":"15m"`, "/pay_within"},
		{"late payment", `"late_payment":"keep"`, "/late_payment"},
		{"shards", `"shards":0`, "/shards"},
		{"shards high", `"shards":65`, "/shards"},
		{"shards of few units", `"shards":4,"stock":{"units":3}`, "/shards"},
		{"shards of few items", `"shards":3,"stock":{"items":["A1","A2"]}`, "/shards"},
		{"several", `"id":"","kind":"","title":"","limit_per_user":-5`, "/kind /title /limit_per_user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := map[string]json.RawMessage{}
			for _, part := range []string{goodSpec, "{" + c.change + "}"} {
				if err := json.Unmarshal([]byte(part), &spec); err != nil {
					t.Fatal(err)
				}
			}
			text, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			_, err = specOf(t, string(text))
			var e *Error
			if !errors.As(err, &e) || e.Reason != InvalidRequest {
				t.Fatalf("error %v", err)
			}
			var fields []string
			for _, f := range e.Faults {
				fields = append(fields, f.Field)
				if f.Problem.EN == "" || f.Problem.ZH == "" {
					t.Errorf("%s says nothing in one of the languages", f.Field)
				}
			}
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("faults at %s, want %s", got, c.fields)
			}
		})
	}
}
