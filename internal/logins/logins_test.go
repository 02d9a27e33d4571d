package logins_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/logins"
)

func TestBook(t *testing.T) {
	var b logins.Book
	first := []string{"redis://ann:one@a:6379", "redis://ann:one@b:6379?addr=c:6379"}
	if b.Of(first[0]) != nil {
		t.Error("a new book has a login")
	}
	if err := b.Change(first, []string{"redis://ann:one@a:6379", "redis://bob:two%40@b:6379?addr=c:6379"}); err != nil {
		t.Fatal(err)
	}
	if u := b.Of(first[1]); u.String() != "bob:two%40" {
		t.Errorf("%v", u)
	}
	// Another setting's addresses leave these as they are.
	if err := b.Change([]string{"mysql://x:y@db/dibs"}, []string{"mysql://x:z@db/dibs"}); err != nil {
		t.Fatal(err)
	}
	// A server without a login needs none.
	if err := b.Change([]string{"memory"}, []string{"memory"}); err != nil || b.Of("memory") != nil {
		t.Error(err)
	}
	for what, now := range map[string][]string{
		"only users and passwords change": {"redis://ann:secret@a:6379", "redis://ann:secret@b:6380?addr=c:6379"},
		"has 1 addresses, and had 2":      {"redis://ann:secret@a:6379"},
		"has no user and no password":     {"redis://a:6379", "redis://ann:secret@b:6379?addr=c:6379"},
		"cannot be read":                  {"redis://ann:sec%ret@a:6379", "redis://ann:secret@b:6379?addr=c:6379"},
	} {
		err := b.Change(first, now)
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "sec") {
			t.Errorf("%v, want %q and no password", err, what)
		}
	}
	// PostgreSQL takes a password among the options, where none can change.
	err := b.Change([]string{"postgres://h/d?user=ann&password=secret-one"}, []string{"postgres://h/d?user=ann&password=secret-two"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a password among the options: %v", err)
	}
	if u := b.Of(first[1]); u.String() != "bob:two%40" || b.Of(first[0]).String() != "ann:one" {
		t.Errorf("a refused change changed %v", u)
	}
}
