package dibs

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// goodSpec is a spec as a merchant posts it.
const goodSpec = `{"id":"phone-noon","kind":"sale","title":"Phone at noon","starts_at":"2026-12-01T04:00:00Z",
	"ends_at":"2026-12-01T06:00:00Z","stock":{"units":200}}`

func specOf(t *testing.T, text string) (*Campaign, error) {
	t.Helper()
	var s CampaignSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s.Campaign(time.Now())
}

func TestSpecDefaults(t *testing.T) {
	c, err := specOf(t, goodSpec)
	if err != nil {
		t.Fatal(err)
	}
	if c.State != Draft || c.LimitPerUser != 1 || c.Shards != 1 || c.LatePayment != Reclaim || c.Price != nil ||
		c.PayWithin != 0 || c.Stock != (Stock{Kind: Units, Total: 200}) || c.InitialStatus() != Confirmed {
		t.Fatalf("%+v", c)
	}
}

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
		{"shards high", `"shards":257`, "/shards"},
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

func TestClaimRequestFaults(t *testing.T) {
	for _, c := range []struct {
		r    ClaimRequest
		want string
	}{
		{ClaimRequest{UserID: "42", Quantity: 1}, ""},
		{ClaimRequest{UserID: "42", Quantity: 1, Key: strings.Repeat("k", 255)}, ""},
		{ClaimRequest{UserID: "", Quantity: 1}, "/user_id"},
		{ClaimRequest{UserID: "4 2", Quantity: -1}, "/user_id /quantity"},
		{ClaimRequest{UserID: "42", Quantity: 1 << 31}, "/quantity"},
		{ClaimRequest{UserID: "42", Quantity: 1, Key: "a b"}, "/Idempotency-Key"},
		{ClaimRequest{UserID: "42", Quantity: 1, Key: strings.Repeat("k", 256)}, "/Idempotency-Key"},
	} {
		var fields []string
		for _, f := range c.r.Faults() {
			fields = append(fields, f.Field)
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%+v: faults at %q, want %q", c.r, got, c.want)
		}
	}
}

func TestDurationsAreStrings(t *testing.T) {
	var d Duration
	for _, bad := range []string{`15`, `"15"`, `"soon"`, `null1`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was read as %v", bad, d)
		}
	}
	if err := json.Unmarshal([]byte(`"15m"`), &d); err != nil || d.Std() != 15*time.Minute {
		t.Fatalf("%v, %v", d, err)
	}
}

// The words and codes are a contract: each word stands once but where two
// statuses share it, and reads back.
func TestReasonsAreARegistry(t *testing.T) {
	var words []string
	for r := range Reason(ReasonCount) {
		info := r.Info()
		if info.Word == "" || info.Status == 0 || info.Title.EN == "" || info.Title.ZH == "" {
			t.Errorf("reason %d is incomplete: %+v", r, info)
		}
		if r != TooLarge && slices.Contains(words, info.Word) {
			t.Errorf("word %s stands twice", info.Word)
		}
		words = append(words, info.Word)
		var back Reason
		if err := back.UnmarshalText([]byte(info.Word)); err != nil || back.String() != info.Word {
			t.Errorf("%s reads back as %s, %v", info.Word, back, err)
		}
	}
	var r Reason
	if err := r.UnmarshalText([]byte("lucky")); err == nil {
		t.Error("an unknown word was read")
	}
}
