package web

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newResponder(t *testing.T, log *slog.Logger) *Responder {
	t.Helper()
	a, err := NewResponder(log)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A page is sent with its tag, and not sent to a caller that names the tag.
func TestPageSend(t *testing.T) {
	a, p := newResponder(t, slog.New(slog.DiscardHandler)), NewPage([]byte(`{"a":1}`))
	tag := Tag([]byte(`{"a":1}`))
	for given, has := range map[string]bool{
		"": false, tag: true, "W/" + tag: true, `"other"`: false, `"other", ` + tag: true, "*": true, strings.Trim(tag, `"`): false,
	} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		if given != "" {
			r.Header.Set("If-None-Match", given)
		}
		status, body := p.Send(a, w, r, TypeJSON), w.Body.String()
		want, wantBody := http.StatusOK, `{"a":1}`
		if has {
			want, wantBody = http.StatusNotModified, ""
		}
		if status != want || w.Code != want || body != wantBody || w.Header().Get("ETag") != tag || w.Header().Get("Content-Length") == "" == !has {
			t.Errorf("If-None-Match %s: %d %d %q %v", given, status, w.Code, body, w.Header())
		}
	}
}

func TestKeepFor(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "max-age=1,", 0: "max-age=1,", time.Second: "max-age=1,", 9900 * time.Millisecond: "max-age=9,", MaxKeep: "max-age=10,", time.Hour: "max-age=10,",
	} {
		if got := KeepFor(d); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %v, want %s", d, got, want)
		}
	}
}

// Vary keeps what other handlers said, and shares no memory with it.
func TestVary(t *testing.T) {
	shared := make([]string, 1, 8)
	shared[0] = "Origin"
	one, other := http.Header{"Vary": shared}, http.Header{"Vary": shared}
	Vary(one, []string{"Authorization"})
	Vary(other, []string{"Accept"})
	if strings.Join(one["Vary"], ",") != "Origin,Authorization" || strings.Join(other["Vary"], ",") != "Origin,Accept" {
		t.Errorf("%v, %v", one, other)
	}
}

// However often it is asked, a pace allows so much in each window.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		for range 5 {
			allowed := 0
			for range 100 {
				if p.Allow() {
					allowed++
				}
			}
			if allowed != paceTimes {
				t.Errorf("%d were allowed", allowed)
			}
			<-time.After(paceWindow)
		}
	})
}
