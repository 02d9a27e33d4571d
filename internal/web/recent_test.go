package web

import (
	"strconv"
	"testing"
	"time"
)

// A thing is noted once a minute, and what is remembered is bounded.
func TestRecent(t *testing.T) {
	var r Recent
	at := time.Unix(600, 0)
	if r.Has("x", at) || !r.Note("x", at) || !r.Has("x", at.Add(59*time.Second)) || r.Has("y", at) {
		t.Error("within a minute")
	}
	if r.Has("x", at.Add(time.Minute)) {
		t.Error("the next minute has what this one had")
	}
	for i, more := range []bool{true, true, false} {
		if r.NoteIn("group", "of group "+strconv.Itoa(i), at, 2) != more {
			t.Errorf("thing %d of a group of two", i)
		}
	}
	for i := range mostRecent - 3 {
		r.Note(strconv.Itoa(i), at)
	}
	if r.Note("one more", at) || r.Has("one more", at) {
		t.Error("more is remembered than the bound")
	}
	if !r.Note("one more", at.Add(time.Minute)) {
		t.Error("the next minute is full")
	}
}
