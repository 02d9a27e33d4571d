package slots

import (
	"reflect"
	"testing"
)

// TestBody: the user's id goes wherever it names the user, with where goods went and the codes, and stays where it is
// another text. What is left has the same slots, so that its frame is the same.
func TestBody(t *testing.T) {
	for text, want := range map[string]string{
		`{"user_id":"u1","carrier":"DHL","tracking_no":"a\"1"}`: `{"user_id":"erased-7","carrier":"","tracking_no":""}`,
		`{"sender_id":"u1","note":"u1"}`:                        `{"sender_id":"erased-7","note":"u1"}`,
		`[{"user":"u1"},{"user":"u12"}]`:                        `[{"user":"erased-7"},{"user":"u12"}]`,
		`{"delivery_id":"an:3:u1"}`:                             `{"delivery_id":"an:3:erased-7"}`,
		`{"delivery_id":"an:3:xu1"}`:                            "",
		`{"user_id":"u2","carrier":"DHL"}`:                      "",
		`{"user":"u1","items":["A\"]","B"],"n":[1]}`:            `{"user":"erased-7","items":[],"n":[1]}`,
		`{"user":"u1","items":[],"note":"\"user\":\"u1\""}`:     `{"user":"erased-7","items":[],"note":"\"user\":\"u1\""}`,
		``: "",
	} {
		before := Body(text)
		erases(t, before, Body, want)
	}
}

// TestTarget: a path names a user after a segment that says so.
func TestTarget(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/users/u1": "/v1/users/erased-7", "/v1/accounts/u1/deposits": "/v1/accounts/erased-7/deposits",
		"/v1/merchants/u1/followers/u1": "/v1/merchants/u1/followers/erased-7", "/v1/campaigns/u1": "", "/v1/users/u12": "", "/users/u1": "/users/erased-7",
		"/v1/users/%751": "/v1/users/erased-7", "/v1/claims?status=paid&user_id=u1": "/v1/claims?status=paid&user_id=erased-7", "/v1/claims?user_id=u12": "",
		"/v1/claims?user_id=%751&x=u1": "/v1/claims?user_id=erased-7&x=u1", "/v1/users/": "", "": "",
	} {
		erases(t, Target(target), Target, want)
	}
}

// erases checks what an erasure makes of a text; "" for nothing.
func erases(t *testing.T, before Text, read func(string) Text, want string) {
	t.Helper()
	after, changed := before.Erase("u1", "erased-7", true)
	if (len(changed) > 0) != (want != "") || want != "" && after.Text != want || want == "" && after.Text != before.Text {
		t.Errorf("%s became %s, changed %v", before.Text, after.Text, changed)
	}
	if again := read(after.Text); !reflect.DeepEqual(again, after) {
		t.Errorf("%s is read as %v, and was written as %v", after.Text, again.Slots, after.Slots)
	}
	for _, i := range changed {
		if pseudonym, ok := after.Erased(i); !ok || after.Slots[i].Kind.OfUser() != (pseudonym == "erased-7") {
			t.Errorf("slot %d of %s: %q, %v", i, after.Text, pseudonym, ok)
		}
		if _, ok := before.Erased(i); ok {
			t.Errorf("slot %d of %s counts as erased", i, before.Text)
		}
	}
}

// FuzzBody: whatever the text, an erasure leaves its frame and the number of its slots.
func FuzzBody(f *testing.F) {
	f.Add(`{"user_id":"u1","carrier":"DHL","items":["a","b"]}`)
	f.Add(`{"delivery_id":"a:u1"}"user":"user":"u1"`)
	f.Fuzz(func(t *testing.T, text string) {
		before := Body(text)
		after, changed := before.Erase("u1", "erased-7", true)
		if again := Body(after.Text); !reflect.DeepEqual(again, after) && len(changed) > 0 {
			t.Fatalf("%q became %q, read as %v, written as %v", text, after.Text, again.Slots, after.Slots)
		}
	})
}
