package dibs

import (
	"strings"
	"testing"
)

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
		{ClaimRequest{UserID: "42", Quantity: 1, Key: "a b"}, ""},
		{ClaimRequest{UserID: "42", Quantity: 1, Key: "a\tb"}, "/Idempotency-Key"},
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
