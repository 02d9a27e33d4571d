package sqlledger

import (
	"testing"

	"github.com/dibs-dev/dibs/erasure"
)

// TestWithoutUser: a text that is no entry of the admin log keeps the items of claims: an event that is sent again is the
// same. internal/slots has the tests of what is changed.
func TestWithoutUser(t *testing.T) {
	x := &eraser{e: &erasure.Erasure{UserID: "u1", Pseudonym: "erased-7"}}
	for text, want := range map[string]string{
		`{"user_id":"u1","carrier":"DHL","items":["A"]}`: `{"user_id":"erased-7","carrier":"","items":["A"]}`,
		`{"user_id":"u12","carrier":"u1"}`:               "",
	} {
		got, changed := x.withoutUser([]byte(text))
		if changed != (want != "") || changed && string(got) != want || !changed && string(got) != text {
			t.Errorf("%s became %s, %t", text, got, changed)
		}
	}
}
