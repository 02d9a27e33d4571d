package clitest

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait finds text that comes later, and text that came just before the end.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, ended := NewOutput(), make(chan struct{})
		go func() {
			for _, part := range []string{"serv", "ing url=x", "\n"} {
				<-time.After(time.Second)
				if _, err := o.Write([]byte(part)); err != nil {
					t.Error(err)
				}
			}
			close(ended)
		}()
		if m := o.Await(t, ended, `url=(\S+)`); m[1] != "x" {
			t.Errorf("%q", m)
		}
		<-ended
		if m := o.Await(t, ended, `(?s)^(.*)$`); m[1] != "serving url=x\n" {
			t.Errorf("%q", m)
		}
	})
}
