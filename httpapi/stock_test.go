package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
)

const asCSV = "Content-Type: text/csv; charset=utf-8"

const emptyBody = `{"id":"spring","kind":"coupon","title":"Spring","starts_at":"2020-12-01T04:00:00Z","ends_at":"2036-12-01T06:00:00Z","stock":{"items":[]}}`

// A batch of coupons from the empty draft on, in order.
var importScenarios = []scenario{
	{name: "an empty draft", method: "POST", path: "/v1/campaigns", body: emptyBody, headers: []string{asAdmin}, status: 201, contains: []string{`"items_count":0`}},
	{name: "of units", method: "POST", path: "/v1/campaigns", body: strings.NewReplacer("spring", "units", `"items":[]`, `"units":5`).Replace(emptyBody), headers: []string{asAdmin}, status: 201},
	{name: "nothing to give", method: "POST", path: "/v1/campaigns/spring/publish", headers: []string{asAdmin}, status: 409, contains: []string{`"invalid_state"`, "import its codes"}},
	{name: "no token", method: "POST", path: "/v1/campaigns/spring/codes", body: "A1\n", headers: []string{asCSV}, status: 401},
	{name: "a user", method: "POST", path: "/v1/campaigns/spring/codes", body: "A1\n", headers: []string{asUser, asCSV}, status: 403},
	{name: "JSON", method: "POST", path: "/v1/campaigns/spring/codes", body: `["A1"]`, headers: []string{asAdmin}, status: 415, contains: []string{"text/csv"}},
	{name: "no file", method: "POST", path: "/v1/campaigns/spring/codes", headers: []string{asAdmin, asCSV}, status: 400, contains: []string{"no codes"}},
	{name: "only a head", method: "POST", path: "/v1/campaigns/spring/codes", body: "code\r\n", headers: []string{asAdmin, asCSV}, status: 400, contains: []string{"no codes"}},
	{name: "no campaign", method: "POST", path: "/v1/campaigns/none/codes", body: "A1\n", headers: []string{asAdmin, asCSV}, status: 404, contains: []string{`"not_found"`}},
	{name: "into units", method: "POST", path: "/v1/campaigns/units/codes", body: "A1\n", headers: []string{asAdmin, asCSV}, status: 409, contains: []string{`"invalid_state"`}},
	{
		name: "broken lines", method: "POST", path: "/v1/campaigns/spring/codes", body: "A1\nA2,x\n\"A3\nA4\x00\n" + strings.Repeat("x", 9000) + "\nA6\n", headers: []string{asAdmin, asCSV}, status: 400,
		contains: []string{`"/lines/2"`, `"/lines/3"`, `"/lines/4"`, `"/lines/5"`}, lacks: []string{`"/lines/1"`, `"/lines/6"`},
	},
	{
		name: "lines that come twice", method: "POST", path: "/v1/campaigns/spring/codes", body: "code\nA1\nA2\nA1\n", headers: []string{asAdmin, asCSV, inChinese}, status: 400,
		contains: []string{`"/lines/4"`, "与第 2 行重复"},
	},
	{name: "nothing moved", method: "GET", path: "/v1/campaigns/spring", headers: []string{asAdmin}, status: 200, contains: []string{`"items_count":0`, `"remaining":0`}},
	{
		name: "good", method: "POST", path: "/v1/campaigns/spring/codes", body: "\ufeffcode\r\nA1\r\n\"A,2\"\r\n\r\n", headers: []string{asAdmin, asCSV, "Idempotency-Key: batch-1"}, status: 200,
		contains: []string{`{"campaign_id":"spring","imported":2,"stock":2}`}, has: []string{"Cache-Control: no-store"},
	},
	{
		name: "again", method: "POST", path: "/v1/campaigns/spring/codes", body: "\ufeffcode\r\nA1\r\n\"A,2\"\r\n\r\n", headers: []string{asAdmin, asCSV, "Idempotency-Key: batch-1"}, status: 200,
		contains: []string{`{"campaign_id":"spring","imported":2,"stock":2}`}, has: []string{"Idempotent-Replayed: true"},
	},
	{name: "the key of another file", method: "POST", path: "/v1/campaigns/spring/codes", body: "A3\n", headers: []string{asAdmin, asCSV, "Idempotency-Key: batch-1"}, status: 422, contains: []string{`"idempotency_key_reused"`}},
	{name: "published", method: "POST", path: "/v1/campaigns/spring/publish", headers: []string{asAdmin}, status: 200, contains: []string{`"remaining":2`}},
	{name: "what is there", method: "POST", path: "/v1/campaigns/spring/codes", body: "A3\nA1\n", headers: []string{asAdmin, asCSV}, status: 400, contains: []string{`"/lines/2"`, "in the campaign already"}},
	{name: "a second batch", method: "POST", path: "/v1/campaigns/spring/codes", body: "A3\nA4\n", headers: []string{asAdmin, asCSV}, status: 200, contains: []string{`"imported":2,"stock":4`}},
	{name: "it is there at once", method: "GET", path: "/v1/campaigns/spring", status: 200, contains: []string{`"remaining":4`}},
	{name: "a code", method: "POST", path: "/v1/campaigns/spring/claims", headers: []string{asUser}, status: 201, contains: []string{`"items":["A1"]`}},
	{name: "ended", method: "POST", path: "/v1/campaigns/spring/end", headers: []string{asAdmin}, status: 200},
	{name: "codes for a user", method: "GET", path: "/v1/campaigns/spring/codes", headers: []string{asUser}, status: 403, lacks: []string{"A1"}},
	{name: "the unclaimed codes", method: "GET", path: "/v1/campaigns/spring/codes?limit=2", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[{"code":`, `"next_cursor":"`}},
	{name: "codes of units", method: "GET", path: "/v1/campaigns/units/codes", headers: []string{asAdmin}, status: 409, contains: []string{`"invalid_state"`}},
	{name: "codes of nothing", method: "GET", path: "/v1/campaigns/none/codes", headers: []string{asAdmin}, status: 404},
	{name: "too late", method: "POST", path: "/v1/campaigns/spring/codes", body: "A5\n", headers: []string{asAdmin, asCSV}, status: 409, contains: []string{`"invalid_state"`}},
}

func TestImportScenarios(t *testing.T) { newStack(t, nil).run(t, importScenarios) }

// A file that is too large is refused by its size, and a client is told how far an
// import is.
func TestImportsThatAreLarge(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), MaxBody: 1 << 10, MaxAdminBody: 1 << 20})
	must(t, err)
	s := serve(t, svc, h)
	if a := s.ask("POST", "/v1/campaigns", emptyBody, asAdmin); a.status != 201 {
		t.Fatal(a.body)
	}
	line := strings.Repeat("x", 1022) + "\n"
	if a := s.ask("POST", "/v1/campaigns/spring/codes", strings.Repeat(line, 1100), asAdmin, asCSV); a.status != 413 || !strings.Contains(a.body, "1048576 bytes") {
		t.Errorf("%d %s", a.status, a.body)
	}
	var file strings.Builder
	for i := range 25_000 {
		fmt.Fprintf(&file, "C-%d\n", i)
	}
	var told atomic.Int64
	v, replayed, err := s.admin.Campaigns.ImportCodes(context.Background(), "spring", strings.NewReader(file.String()), "k", told.Store)
	if err != nil || replayed || v.Imported != 25_000 || told.Load() < 20_000 {
		t.Errorf("%+v %v %v, told of %d", v, replayed, err, told.Load())
	}
	v, replayed, err = s.admin.Campaigns.ImportCodes(context.Background(), "spring", strings.NewReader(file.String()), "k", nil)
	if err != nil || !replayed || v.Imported != 25_000 {
		t.Errorf("again: %+v %v %v", v, replayed, err)
	}
	var refusal *client.Error
	_, _, err = s.admin.Campaigns.ImportCodes(context.Background(), "spring", strings.NewReader("C-7\n"), "", nil)
	if !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest || refusal.Errors[0].Pointer != "/lines/1" {
		t.Errorf("%+v", err)
	}
}

// A sender who stops half-way has imported nothing.
func TestImportCutOff(t *testing.T) {
	s := newStack(t, nil)
	if a := s.ask("POST", "/v1/campaigns", emptyBody, asAdmin); a.status != 201 {
		t.Fatal(a.body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := s.admin.Campaigns.ImportCodes(ctx, "spring", &stalled{ctx: ctx}, "", nil); err == nil {
		t.Error("half a file was taken")
	}
	if a := s.ask("GET", "/v1/campaigns/spring", "", asAdmin); !strings.Contains(a.body, `"items_count":0`) {
		t.Error(a.body)
	}
}

// stalled is a file that gives one line and then waits.
type stalled struct {
	ctx   context.Context
	given bool
}

func (s *stalled) Read(p []byte) (int, error) {
	if !s.given {
		s.given = true
		return copy(p, "A1\n"), nil
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
