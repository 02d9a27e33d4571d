package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi"
)

// Sessions are listed with what tells them apart, and ended one by one: one's own by any key, all
// by admins.
func TestSessionsAreListedAndEnded(t *testing.T) {
	s := newStack(t, nil)
	_, secret, err := s.service.Access.CreateKey(t.Context(), "eyes", access.RoleViewer)
	must(t, err)
	asViewer, byViewer := "Authorization: Bearer "+secret, `{"key":"`+secret+`"}`
	// The list goes by the milliseconds in which they began.
	signIn := func(body string) (cookie, csrf string) {
		<-time.After(2 * time.Millisecond)
		return s.signIn(body)
	}
	first, _ := signIn(byKey)
	second, csrf := signIn(byViewer)
	third, _ := signIn(byViewer)
	list := func(as string) (ids []string, current int) {
		t.Helper()
		a := s.ask("GET", "/v1/sessions", "", as)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for i, item := range a.json["items"].([]any) {
			v := item.(map[string]any)
			if ids = append(ids, v["id"].(string)); v["current"] == true {
				current = i + 1
			}
			if v["address"] != "127.0.0.1" || v["agent"] == "" || v["key_id"] == "" {
				t.Errorf("%v", v)
			}
		}
		return ids, current
	}
	all, current := list(asAdmin)
	if len(all) != 3 || current != 0 {
		t.Fatalf("an admin sees %v, %d", all, current)
	}
	// The newest first.
	mine, current := list(second)
	if len(mine) != 2 || mine[0] != all[0] || mine[1] != all[1] || current != 2 {
		t.Errorf("the viewer sees %v of %v, the current one is %d", mine, all, current)
	}
	for _, c := range []struct {
		name, id string
		headers  []string
		status   int
	}{
		{"another key's session", all[2], []string{asViewer}, 404},
		{"without the session's token", all[0], []string{second}, 403},
		{"one's own other session", all[0], []string{second, csrf}, 200},
		{"again", all[0], []string{second, csrf}, 200},
		{"an unknown one", "s-none", []string{asAdmin}, 404},
		{"any, by an admin", all[2], []string{asAdmin}, 200},
	} {
		if a := s.ask("DELETE", "/v1/sessions/"+c.id, "", c.headers...); a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
	}
	for cookie, status := range map[string]int{first: 401, second: 200, third: 401} {
		if a := s.ask("GET", "/v1/session", "", cookie); a.status != status {
			t.Errorf("%d, want %d: %s", a.status, status, a.body)
		}
	}
	if a := s.ask("DELETE", "/v1/session", "", second, csrf); a.status != 200 {
		t.Errorf("signing out: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/session", "", second); a.status != 401 {
		t.Errorf("after signing out: %d %s", a.status, a.body)
	}
	if all, _ := list(asAdmin); len(all) != 0 {
		t.Errorf("left are %v", all)
	}
}

// A revoked key ends its sessions.
func TestSessionsEndWithTheirKey(t *testing.T) {
	s := newStack(t, nil)
	key, secret, err := s.service.Access.CreateKey(t.Context(), "eyes", access.RoleViewer)
	must(t, err)
	s.signIn(`{"key":"` + secret + `"}`)
	must(t, s.service.Access.RevokeKey(t.Context(), key.ID))
	if a := s.ask("GET", "/v1/sessions", "", asAdmin); len(a.json["items"].([]any)) != 0 {
		t.Errorf("%s", a.body)
	}
}

// TestStreamsEndWithTheirSession: a stream that a session's cookie has opened ends with the session, although its key
// goes on; one that the key has opened by itself goes on.
func TestStreamsEndWithTheirSession(t *testing.T) {
	s := newStack(t, nil)
	s.sale("phone", 5, 1)
	cookie, _ := s.signIn(byKey)
	open := func(header string) io.ReadCloser {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/campaigns/phone/stats/stream", nil)
		must(t, err)
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		if answer.StatusCode != 200 {
			t.Fatalf("%s: %s", name, answer.Status)
		}
		return answer.Body
	}
	bySession, byItself := open(cookie), open(asAdmin)
	all, err := s.service.Sessions.List(t.Context(), "")
	must(t, err)
	must(t, s.service.Sessions.End(t.Context(), all[0].ID))
	if _, err := io.Copy(io.Discard, bySession); err != nil {
		t.Errorf("the session's stream: %v", err)
	}
	if _, err := byItself.Read(make([]byte, 1)); err != nil {
		t.Errorf("the key's stream: %v", err)
	}
}

// awaySessions are sessions of a ledger that does not answer.
type awaySessions struct{ httpapi.Sessions }

func (awaySessions) Check(context.Context, string) error {
	return dibs.Unavail(dibs.EffectNone, errors.New("away"))
}

// A session that cannot be looked up is not believed, and not called false either.
func TestSessionsWithoutTheLedger(t *testing.T) {
	s := newStack(t, func(s *httpapi.Services) { s.Sessions = awaySessions{s.Sessions} })
	cookie, _ := s.signIn(byKey)
	if a := s.ask("GET", "/v1/claims", "", cookie); a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
