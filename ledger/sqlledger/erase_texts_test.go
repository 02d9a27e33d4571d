package sqlledger

import (
	"testing"

	"github.com/dibs-dev/dibs/erasure"
)

func testEraser() *eraser { return &eraser{e: &erasure.Erasure{UserID: "u1", Pseudonym: "gone-7"}} }

// TestWithoutUser: the user's id goes wherever it names the user, with where
// goods went, and stays where it is another text.
func TestWithoutUser(t *testing.T) {
	for text, want := range map[string]string{
		`{"user_id":"u1","carrier":"DHL","tracking_no":"a\"1"}`: `{"user_id":"gone-7","carrier":"","tracking_no":""}`,
		`{"sender_id":"u1","note":"u1"}`:                        `{"sender_id":"gone-7","note":"u1"}`,
		`[{"user":"u1"},{"user":"u12"}]`:                        `[{"user":"gone-7"},{"user":"u12"}]`,
		`{"delivery_id":"an:3:u1"}`:                             `{"delivery_id":"an:3:gone-7"}`,
		`{"delivery_id":"an:3:xu1"}`:                            "",
		`{"user_id":"u2","carrier":"DHL"}`:                      "",
	} {
		got, changed := testEraser().withoutUser([]byte(text))
		if changed != (want != "") || changed && string(got) != want || !changed && string(got) != text {
			t.Errorf("%s became %s, %t", text, got, changed)
		}
	}
}

// TestTargetWithoutUser: a path names a user after a segment that says so.
func TestTargetWithoutUser(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/users/u1": "/v1/users/gone-7", "/v1/accounts/u1/deposits": "/v1/accounts/gone-7/deposits",
		"/v1/merchants/u1/followers/u1": "/v1/merchants/u1/followers/gone-7", "/v1/campaigns/u1": "", "/v1/users/u12": "",
		"/v1/users/%751": "/v1/users/gone-7", "/v1/claims?status=paid&user_id=u1": "/v1/claims?status=paid&user_id=gone-7", "/v1/claims?user_id=u12": "",
	} {
		got, changed := testEraser().targetWithoutUser(target)
		if changed != (want != "") || changed && got != want {
			t.Errorf("%s became %s, %t", target, got, changed)
		}
	}
}
