package web

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// Every reason makes a problem that reads back whole, in both languages.
func TestProblemEncoder(t *testing.T) {
	at := time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	for i := range dibs.ReasonCount + 1 {
		r := dibs.Reason(i)
		for _, zh := range []bool{false, true} {
			p := Problem{
				Reason: r, StartsAt: at, EndsAt: at, Remaining: 7, ClaimIDs: []string{"A"}, Effect: dibs.EffectNone,
				Faults: []dibs.Fault{{Field: "/a~1b", Problem: dibs.Text{EN: "is bad", ZH: "不对"}}},
			}
			var got api.Problem
			if err := json.Unmarshal(p.Append(nil, zh, "id-1"), &got); err != nil {
				t.Fatalf("%s: %v", r, err)
			}
			info := r.Info()
			want := api.Problem{
				Type: "urn:dibs:problem:" + info.Word, Title: info.Title.In(zh), Status: info.Status, Detail: info.Title.In(zh),
				Reason: info.Word, Code: info.Code, Retryable: info.Retryable, RequestID: "id-1", Effect: dibs.EffectNone,
				Errors: []api.ProblemFault{{Pointer: "/a~1b", Detail: p.Faults[0].Problem.In(zh)}},
			}
			switch r {
			case dibs.NotStarted:
				want.StartsAt = &at
			case dibs.Ended:
				want.EndsAt = &at
			case dibs.SoldOut:
				want.Remaining = &p.Remaining
			case dibs.LimitReached:
				want.ClaimIDs = p.ClaimIDs
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", r, got, want)
			}
			if v := p.View(zh, "id-1"); !reflect.DeepEqual(v, want) {
				t.Errorf("%s as a view: %+v, want %+v", r, v, want)
			}
		}
	}
}
