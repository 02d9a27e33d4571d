package clitest

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait; only a broken program uses it up.
const Patience = time.Minute

// Output collects what a program writes, and wakes the tests that wait for it.
//
// mu guards text and more. Each write closes the channel in more and puts another there, so
// one that was read together with a text closes when there is more than that text.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

// NewOutput returns an empty output.
func NewOutput() *Output { return &Output{more: make(chan struct{})} }

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(b)
}

// read returns the text so far, and a channel that closes when there is more.
func (o *Output) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.more
}

// String returns the text so far.
func (o *Output) String() string {
	s, _ := o.read()
	return s
}

// Await waits until the text matches a pattern, and returns the groups of the match.
// It fails the test when the program has ended without it.
func (o *Output) Await(t testing.TB, ended <-chan struct{}, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(Patience)
	for {
		text, more := o.read()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-more:
		case <-ended:
			// It may have written the text between the look and its end.
			if m := re.FindStringSubmatch(o.String()); m != nil {
				return m
			}
			t.Fatalf("the program ended before it wrote %s:\n%s", pattern, o)
		case <-deadline:
			t.Fatalf("nothing matched %s:\n%s", pattern, o)
		}
	}
}
