package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/httpapi"
)

// A campaign for a list lets the users of the list through, and after another import
// the users of that one; others are refused.
func TestAudience(t *testing.T) {
	s := newStack(t, nil)
	csv := "Content-Type: text/csv"
	spec := func(gate string) string {
		return fmt.Sprintf(`{"id":"vips","kind":"sale","title":"T","starts_at":%q,"ends_at":%q,"limit_per_user":100,"stock":{"units":500},"gate":%s}`,
			time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339), gate)
	}
	const gate = `{"audience":{"list":"vip"}}`
	if a := s.ask("POST", "/v1/campaigns", spec(gate), asAdmin); a.status != 400 || !strings.Contains(a.body, "/gate/audience/list") {
		t.Errorf("for a list that there is not: %d %s", a.status, a.body)
	}
	if a := s.ask("PUT", "/v1/audiences/vip", "user\n42\n", asAdmin, csv); a.status != 200 || fmt.Sprint(a.json["users"], a.json["duplicates"]) != "1 0" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.ask("PUT", "/v1/audiences/vip", "user\n42\n4 2\n", asAdmin, csv); a.status != 400 || !strings.Contains(a.body, "/lines/3") {
		t.Errorf("with a broken line: %d %s", a.status, a.body)
	}
	for _, step := range []string{"", "/vips/publish"} {
		if a := s.ask("POST", "/v1/campaigns"+step, map[bool]string{true: spec(gate)}[step == ""], asAdmin); a.status > 201 {
			t.Fatalf("%s: %d %s", step, a.status, a.body)
		}
	}
	want := func(user string, status int) answer {
		t.Helper()
		over := time.After(time.Minute)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			a := s.ask("POST", "/v1/campaigns/vips/claims", "", "Authorization: Bearer dev_"+user)
			if a.status == status {
				return a
			}
			if a.status == 503 && a.json["effect"] != "none" {
				t.Fatalf("%s", a.body)
			}
			select {
			case <-tick.C:
			case <-over:
				t.Fatalf("user %s: %d, want %d: %s", user, a.status, status, a.body)
			}
		}
	}
	want("42", 201)
	if a := want("7", 403); a.json["reason"] != "not_eligible" || a.json["code"] != float64(30009) {
		t.Errorf("%s", a.body)
	}
	if a := s.ask("PUT", "/v1/audiences/vip", "7\n", asAdmin, csv); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want("7", 201)
	want("42", 403)
}

// slowImports are lists whose imports wait until they may go on.
type slowImports struct {
	httpapi.Audiences
	begun, goOn chan struct{}
}

func (a slowImports) Import(ctx context.Context, id string, file io.Reader, done func(int64)) (api.AudienceView, error) {
	a.begun <- struct{}{}
	<-a.goOn
	return a.Audiences.Import(ctx, id, file, done)
}

// A node imports a few files at a time: another one is refused at once, and taken when one
// is done.
func TestImportsAtATime(t *testing.T) {
	const most = 4
	svc, lists := newServiceAndLists(t)
	slow := slowImports{lists, make(chan struct{}, most+2), make(chan struct{})}
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Audiences: slow})
	must(t, err)
	s := serve(t, svc, h)
	file := func(name string) answer {
		return s.ask("PUT", "/v1/audiences/"+name, "user\n42\n", asAdmin, "Content-Type: text/csv")
	}
	var all sync.WaitGroup
	for i := range most {
		all.Go(func() {
			a := file(fmt.Sprintf("list-%d", i))
			if a.status != 200 {
				t.Errorf("file %d: %d %s", i, a.status, a.body)
			}
			checkDisposition(t, a)
		})
		<-slow.begun
	}
	if a := file("one-more"); a.status != 503 || a.json["reason"] != "overloaded" || a.json["effect"] != "none" || a.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", a.status, a.body)
	}
	close(slow.goOn)
	all.Wait()
	if a := file("one-more"); a.status != 200 {
		t.Errorf("after the others: %d %s", a.status, a.body)
	}
}
