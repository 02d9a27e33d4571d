package audience

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
)

// FuzzUserFile: whatever a file of users or followers holds, all its lines are taken, each a
// valid id, or none counts and the bad ones are named.
func FuzzUserFile(f *testing.F) {
	for _, seed := range []string{"user\n1\n2\n", "\ufeff\"1\"\r\n2", "a b\n", "1,5\n2,x\n", "\x00\n\xff\xfe", strings.Repeat("x", 5000), strings.Repeat("!\n", 50), ",\n\n", "user,rank\n1,9223372036854775808"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var users []string
		err := readLines(t.Context(), bytes.NewReader(file), userRules, func(user string) error {
			users = append(users, user)
			return nil
		})
		checkLines(t, file, users, err)
		users = nil
		err = readLines(t.Context(), bytes.NewReader(file), followerRules, func(f gate.Follower) error {
			users = append(users, f.User)
			return nil
		})
		checkLines(t, file, users, err)
	})
}

// checkLines checks what reading a file came to.
func checkLines(t *testing.T, file []byte, users []string, err error) {
	t.Helper()
	for _, user := range users {
		if !dibs.IsID(user) {
			t.Fatalf("%q has the user %q", file, user)
		}
	}
	if len(users) > 1+bytes.Count(file, []byte("\n")) {
		t.Fatalf("%q has %d users", file, len(users))
	}
	var e *dibs.Error
	if err != nil && (!errors.As(err, &e) || e.Reason != dibs.InvalidRequest || len(e.Faults) == 0 || len(e.Faults) > dibs.MaxListedFaults+1) {
		t.Fatalf("%q: %v", file, err)
	}
}

// FuzzPart: a part of a list that was changed in the ledger has valid users, or is damaged.
func FuzzPart(f *testing.F) {
	good, err := packUsers([]string{"1", "user-2"})
	if err != nil {
		f.Fatal(err)
	}
	bad, err := packUsers([]string{"1", "no id"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(bad)
	f.Add(good[:len(good)-2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, part []byte) {
		n := 0
		err := unpackUsers(part, func(user string) error {
			if n++; !dibs.IsID(user) || n > partUsers {
				t.Fatalf("%x has the user %q, the %d-th", part, user, n)
			}
			return nil
		})
		if err != nil && !errors.Is(err, dibs.ErrCorrupt) {
			t.Fatalf("%x: %v", part, err)
		}
	})
}
