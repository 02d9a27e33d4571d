package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
)

// FuzzClaimBody compares the claim's decoder with a strict reading by
// encoding/json: what the quick one accepts must mean the same there, and the
// whole must accept exactly what the strict reading accepts.
func FuzzClaimBody(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `{"quantity":1}`, ` { "quantity" : 2147483647 } `, `{"quantity":2147483648}`, `{"quantity":0}`,
		`{"quantity":01}`, `{"quantity":1.0}`, `{"quantity":1e2}`, `{"quantity":-1}`, `{"quantity":null}`, `{"quantity":"1"}`, `{"Quantity":1}`,
		`{"quantity":1,"quantity":2}`, `{"quant\u0069ty":3}`, `{"quantity":1}x`, `{"quantity":1,}`, `{"x":{"quantity":1}}`, "{\"\xff\":1}", `[]`, `null`,
		`{"reference":"https://shop.example/?a=1"}`, `{"quantity":2,"reference":"r"}`, `{"reference":null}`, `{"reference":1}`, `{"reference":""}`,
	} {
		f.Add([]byte(seed))
	}
	d := web.NewDecoder[claimBody](apiConfig("test").Components.Schemas, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		want, reference, ok := strictBody(raw)
		if q, quick := quickQuantity(raw); quick && (!ok || q != want || reference != "") {
			t.Fatalf("%q: quickly %d; strictly %d, %v", raw, q, want, ok)
		}
		got, text, err := decodeClaim(d, raw)
		if (err == nil) != ok || ok && (got != want || text != reference) {
			t.Fatalf("%q: %d, %v; strictly %d, %v", raw, got, err, want, ok)
		}
		if err != nil {
			var e *dibs.Error
			if !errors.As(err, &e) || e.Reason != dibs.InvalidRequest {
				t.Fatalf("%q: %v", raw, err)
			}
		}
	})
}

// strictBody reads a claim's body with encoding/json alone: one object, each of its
// possible members once, by its exact name, in range.
func strictBody(raw []byte) (int64, string, bool) {
	if len(bytes.Trim(raw, " \n\r\t")) == 0 {
		return 1, "", true
	}
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return 0, "", false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return 0, "", false
	}
	quantity, given, reference, references := int64(1), 0, "", 0
	for dec.More() {
		name, err := dec.Token()
		if err == nil && name == "reference" {
			var text *string
			if err := dec.Decode(&text); err != nil || text == nil || references > 0 || utf8.RuneCountInString(*text) > 256 {
				return 0, "", false
			}
			reference = *text
			references++
			continue
		}
		if err != nil || name != "quantity" {
			return 0, "", false
		}
		var n *int64
		if err := dec.Decode(&n); err != nil || n == nil || *n < 1 || *n > math.MaxInt32 {
			return 0, "", false
		}
		quantity = *n
		given++
	}
	if _, err := dec.Token(); err != nil || given > 1 {
		return 0, "", false
	}
	_, err := dec.Token()
	return quantity, reference, errors.Is(err, io.EOF)
}

// The claim's own encoder and encoding/json say the same.
func TestClaimEncoder(t *testing.T) {
	at := time.Date(2026, 12, 1, 4, 0, 0, 123e6, time.FixedZone("", 3600))
	for _, c := range []dibs.Claim{
		{},
		{
			ID: "7K3M9QX2B4TD6RWA", CampaignID: "noon", Kind: dibs.Sale, UserID: "42", Quantity: 3, Status: dibs.Pending,
			OrderType: dibs.FlashOrder, Amount: &dibs.Money{Amount: 99900, Currency: "CNY"}, PayBy: at, CreatedAt: at, UpdatedAt: at, Reference: `https://shop.example/?a="1"&b=<中>`,
		},
		{Kind: dibs.Coupon, Status: dibs.Released, Items: []string{`A"1`, "中\n文", "<&>"}, Quantity: 1 << 40, CreatedAt: at},
	} {
		var got, want api.ClaimView
		if err := json.Unmarshal(appendClaim(nil, &c), &got); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(api.ClaimViewOf(&c))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		// Times are compared as instants, the rest as it is.
		if !got.CreatedAt.Equal(want.CreatedAt) || !got.UpdatedAt.Equal(want.UpdatedAt) || (got.PayBy == nil) != (want.PayBy == nil) || got.PayBy != nil && !got.PayBy.Equal(*want.PayBy) {
			t.Errorf("times differ: %+v, want %+v", got, want)
		}
		got.CreatedAt, got.PayBy, want.CreatedAt, want.PayBy = time.Time{}, nil, time.Time{}, nil
		got.UpdatedAt, want.UpdatedAt = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if s := string(appendClaim(nil, &c)); c.CreatedAt.Equal(at) && !strings.Contains(s, `"created_at":"2026-12-01T03:00:00.123Z"`) {
			t.Errorf("not in UTC: %s", s)
		}
	}
}
