package redisengine

import (
	"strconv"
	"testing"
)

// TestHolders: every user who was added is found, and of others less than one in a hundred,
// when there are as many as the list is made for.
func TestHolders(t *testing.T) {
	h := newHolders(50_000)
	for i := int64(0); !h.full(); i++ {
		h.add("user-" + strconv.FormatInt(i, 10))
	}
	for i := range h.users {
		if user := "user-" + strconv.FormatInt(i, 10); !h.may(user) {
			t.Fatalf("%s is a holder, and not found", user)
		}
	}
	const others = 200_000
	found := 0
	for i := range others {
		if h.may("other-" + strconv.Itoa(i)) {
			found++
		}
	}
	t.Logf("of %d others %d are taken for holders, by %d bits a user", others, found, int64(64*len(h.bits))/h.room)
	if found == 0 || found > others/100 {
		t.Errorf("of %d others %d are taken for holders", others, found)
	}
}
