package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/overload"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/api"
)

// Where and as whom the scenarios claim.
const (
	onePath  = "/v1/campaigns/one/claims"
	manyPath = "/v1/campaigns/many/claims"
	other    = "Authorization: Bearer dev_7"
	chinese  = "Accept-Language: zh-CN,zh;q=0.9,en;q=0.5"
)

// claimScenarios follow one another on the campaigns of TestClaimScenarios.
var claimScenarios = []scenario{
	{
		name: "granted", method: "POST", path: onePath, body: `{"quantity":1}`, headers: []string{asUser, "Idempotency-Key: first"}, status: 201,
		contains: []string{`"campaign_id":"one"`, `"user_id":"42"`, `"items":[]`, `"status":"confirmed"`, `"status_code":1`, `"amount":null`},
		lacks:    []string{"pay_by"}, has: []string{"Location: ", "Content-Type: application/json", "Cache-Control: no-store"},
	},
	{
		name: "repeated", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Idempotency-Key: first"}, status: 200,
		contains: []string{`"campaign_id":"one"`}, has: []string{"Idempotent-Replayed: true"},
	},
	{
		name: "the key with another quantity", method: "POST", path: onePath, body: `{"quantity":2}`, headers: []string{asUser, "Idempotency-Key: first"}, status: 422,
		contains: []string{`"reason":"idempotency_key_reused"`, `"code":20001`},
	},
	{
		name: "sold out before limit", method: "POST", path: onePath, headers: []string{asUser}, status: 409,
		contains: []string{`"reason":"sold_out"`, `"code":30006`, `"remaining":0`, `"retryable":true`}, lacks: []string{"claim_ids"},
	},
	{name: "sold out in Chinese", method: "POST", path: onePath, headers: []string{other, chinese}, status: 409, contains: []string{"已经抢完了"}},
	{
		name: "another user's key is another", method: "POST", path: onePath, body: `{}`, headers: []string{other, "Idempotency-Key: first"}, status: 409,
		contains: []string{"sold_out"},
	},
	{
		name: "fewer left", method: "POST", path: manyPath, body: `{"quantity":6}`, headers: []string{asUser}, status: 409,
		contains: []string{`"remaining":5`, "only 5 left"},
	},
	{
		name: "quantity beyond the limit", method: "POST", path: manyPath, body: `{"quantity":4}`, headers: []string{asUser}, status: 409,
		contains: []string{`"reason":"limit_reached"`, `"code":30007`, `"claim_ids":[]`},
	},
	{name: "no body", method: "POST", path: manyPath, headers: []string{asUser}, status: 201, contains: []string{`"quantity":1`}},
	{name: "spaces and two", method: "POST", path: manyPath, body: " {\n \"quantity\" : 2 } \n", headers: []string{asUser}, status: 201, contains: []string{`"quantity":2`}},
	{
		name: "limit reached", method: "POST", path: manyPath, body: `{}`, headers: []string{asUser}, status: 409,
		contains: []string{`"reason":"limit_reached"`, `"claim_ids":["`},
	},
	{
		name: "not started", method: "POST", path: "/v1/campaigns/later/claims", headers: []string{asUser}, status: 409,
		contains: []string{`"reason":"not_started"`, `"code":30004`, `"starts_at":"`},
	},
	{
		name: "ended", method: "POST", path: "/v1/campaigns/over/claims", headers: []string{asUser}, status: 409,
		contains: []string{`"reason":"ended"`, `"code":30005`, `"ends_at":"`, `"retryable":false`},
	},
	{
		name: "paused", method: "POST", path: "/v1/campaigns/rest/claims", headers: []string{asUser}, status: 409,
		contains: []string{`"reason":"paused"`, `"code":30003`},
	},
	{
		name: "unknown campaign", method: "POST", path: "/v1/campaigns/nothing/claims", headers: []string{asUser}, status: 404,
		contains: []string{`"reason":"not_found"`, `"code":30002`},
	},
	{name: "draft", method: "POST", path: "/v1/campaigns/draft/claims", headers: []string{asUser}, status: 404, lacks: []string{"Secret"}},
	{name: "no campaign id at all", method: "POST", path: "/v1/campaigns/a%2Fb%00/claims", headers: []string{asUser}, status: 404},
	{name: "method", method: "PUT", path: onePath, headers: []string{asUser}, status: 405, has: []string{"Allow: GET, HEAD, POST"}},
	{name: "wrong type", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Content-Type: text/plain"}, status: 415},
	{name: "charset", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Content-Type: application/json; charset=utf-8"}, status: 409},
	{name: "empty key", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Idempotency-Key: "}, status: 400, contains: []string{"Idempotency-Key"}},
	{name: "long key", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Idempotency-Key: " + strings.Repeat("k", 256)}, status: 400, contains: []string{`"/Idempotency-Key"`}},
	{name: "enormous quantity", method: "POST", path: onePath, body: `{"quantity":99999999999999999999}`, headers: []string{asUser}, status: 400, contains: []string{`"/quantity"`, "must be at most 2147483647"}},
	{name: "long device", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Dibs-Device: " + strings.Repeat("d", 256)}, status: 400, contains: []string{`"/Dibs-Device"`, "must be at most 255 bytes"}},
	{name: "device in full length", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Dibs-Device: " + strings.Repeat("d", 255)}, status: 409},
	{name: "key with a space", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Idempotency-Key: a b"}, status: 400},
	{name: "key as the IETF's draft writes it, in quotes", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, `Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324"`}, status: 409},
	{name: "key in full length", method: "POST", path: onePath, body: `{}`, headers: []string{asUser, "Idempotency-Key: " + strings.Repeat("k", 255)}, status: 409},
	{
		name: "too large", method: "POST", path: onePath, body: `{"quantity":1` + strings.Repeat(" ", 16<<10) + `}`, headers: []string{asUser}, status: 413,
		contains: []string{`"reason":"invalid_request"`, "16384"},
	},
	{name: "large but allowed", method: "POST", path: onePath, body: `{"quantity":1` + strings.Repeat(" ", 15<<10) + `}`, headers: []string{asUser}, status: 409},
}

func TestClaimScenarios(t *testing.T) {
	s := newStack(t, nil)
	now := time.Now()
	s.sale("one", 1, 1)
	s.sale("many", 5, 3)
	s.campaign("later", now.Add(time.Hour), now.Add(2*time.Hour), 5, 1)
	s.sale("over", 5, 1)
	s.sale("rest", 5, 1)
	_, err := s.admin.Campaigns.End(context.Background(), "over")
	must(t, err)
	_, err = s.admin.Campaigns.Pause(context.Background(), "rest")
	must(t, err)
	units := int64(1)
	_, err = s.admin.Campaigns.Create(context.Background(), dibs.CampaignSpec{
		ID: "draft", Kind: dibs.Sale, Title: "Secret plan",
		StartsAt: now, EndsAt: now.Add(time.Hour), Stock: dibs.StockSpec{Units: &units},
	}, "")
	must(t, err)

	s.run(t, claimScenarios)
}

func TestClaimBodies(t *testing.T) {
	s := newStack(t, nil)
	s.sale("noon", 1, 1)
	for body, pointer := range map[string]string{
		`{"quantity":0}`:                    "/quantity",
		`{"quantity":-1}`:                   "/quantity",
		`{"quantity":1.5}`:                  "/quantity",
		`{"quantity":1.0}`:                  "/quantity",
		`{"quantity":1e0}`:                  "/quantity",
		`{"quantity":"1"}`:                  "/quantity",
		`{"quantity":null}`:                 "/quantity",
		`{"quantity":[]}`:                   "/quantity",
		`{"quantity":2147483648}`:           "/quantity",
		`{"quantity":99999999999999999999}`: "/quantity",
		`{"quantity":1,"quantity":1}`:       "/quantity",
		`{"Quantity":1}`:                    "/Quantity",
		`{"quantity":1,"price":0}`:          "/price",
		`{"user_id":"7"}`:                   "/user_id",
		`{"a/b~c":1}`:                       "/a~1b~0c",
		`{"quantity":01}`:                   "",
		`{"quantity":1}{}`:                  "",
		`{"quantity":1`:                     "",
		`[]`:                                "",
		`null`:                              "",
		`1`:                                 "",
		`{,}`:                               "",
		"{\"quantity\":1}\x00":              "",
		"{\"\xff\":1}":                      "none",
	} {
		a := s.ask("POST", "/v1/campaigns/noon/claims", body, asUser)
		checkCommon(t, a)
		if a.status != 400 || a.json["reason"] != "invalid_request" || a.json["code"] != float64(20001) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
			continue
		}
		if pointer == "none" {
			continue
		}
		var p api.Problem
		must(t, json.Unmarshal([]byte(a.body), &p))
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer || p.Errors[0].Detail == "" {
			t.Errorf("%s: errors %v, want one at %q", body, p.Errors, pointer)
		}
	}
	if a := s.ask("POST", "/v1/campaigns/noon/claims", `{"quant\u0069ty":1}`, asUser); a.status != 201 {
		t.Errorf("an escaped name: %d %s", a.status, a.body)
	}
}

func TestRequestID(t *testing.T) {
	s := newStack(t, nil)
	seen := map[string]bool{}
	for given, kept := range map[string]bool{"abc-123": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "": false} {
		for _, path := range []string{"/v1/campaigns/x/claims", "/v1/time"} {
			a := s.ask("POST", path, "", asUser, "X-Request-Id: "+given)
			checkCommon(t, a)
			got := a.header.Get("X-Request-Id")
			if (got == given) != kept {
				t.Errorf("%q came back as %q", given, got)
			}
			if !kept && seen[got] {
				t.Errorf("%q was given twice", got)
			}
			seen[got] = true
		}
	}
}

// Many users and many repeats over HTTP: exactly the stock is granted, and
// each user once.
func TestClaimsAtOnce(t *testing.T) {
	s := newStack(t, nil)
	const stock, users = 20, 100
	s.sale("rush", stock, 1)
	var granted, replayed, refused sync.Map
	var wg sync.WaitGroup
	for u := range users {
		for range 3 {
			wg.Go(func() {
				user := fmt.Sprintf("u%d", u)
				a := s.ask("POST", "/v1/campaigns/rush/claims", "{}", "Authorization: Bearer dev_"+user, "Idempotency-Key: press")
				switch a.status {
				case http.StatusCreated:
					if _, twice := granted.LoadOrStore(user, a.json["id"]); twice {
						t.Errorf("%s was granted twice", user)
					}
				case http.StatusOK:
					replayed.Store(user, a.json["id"])
				case http.StatusConflict:
					refused.Store(user, true)
				default:
					t.Errorf("%d %s", a.status, a.body)
				}
			})
		}
	}
	wg.Wait()
	n := 0
	granted.Range(func(user, id any) bool {
		n++
		if again, ok := replayed.Load(user); ok && again != id {
			t.Errorf("%s got %v, then %v", user, id, again)
		}
		if _, also := refused.Load(user); also {
			t.Errorf("%s was granted and refused", user)
		}
		return true
	})
	if n != stock {
		t.Errorf("%d granted of %d", n, stock)
	}
	report, err := s.admin.Audit.Verify(context.Background(), "rush")
	must(t, err)
	if !report.OK {
		t.Errorf("a promise is broken: %+v", report)
	}
}

// Slow bodies and bodies cut off are refused, not waited for.
func TestBodyCutOff(t *testing.T) {
	s := newStack(t, nil)
	body, w := io.Pipe()
	req, err := http.NewRequest("POST", s.url+"/v1/campaigns/x/claims", body)
	must(t, err)
	req.Header.Set("Authorization", "Bearer dev_42")
	req.ContentLength = 100
	go func() {
		_, _ = w.Write([]byte(`{"quan`))
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		must(t, resp.Body.Close())
		if resp.StatusCode < 400 {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

// A claim that cannot be answered in time is refused before its token or its
// body is looked at; other calls are not.
func TestShedBeforeAnythingElse(t *testing.T) {
	guard, err := overload.New(overload.Config{Max: 1})
	must(t, err)
	defer guard.Close()
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Overload: guard})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 5, 5)
	claim := func(more ...string) answer {
		return s.ask("POST", "/v1/campaigns/phone/claims", "no JSON", append(more, "Authorization: nobody")...)
	}
	if a := claim(); a.status != 401 {
		t.Errorf("while there is room: %d %s", a.status, a.body)
	}
	mark, ok := guard.Enter()
	if a := claim(); !ok || a.status != 503 || a.json["reason"] != "overloaded" || a.json["effect"] != "none" {
		t.Errorf("while there is none: %d %s", a.status, a.body)
	}
	if a := claim("Idempotency-Key: press-1"); a.status != 503 || a.json["reason"] != "overloaded" || a.json["effect"] != "unknown" {
		t.Errorf("with a key, which was not looked up: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/me/claims", "", asUser); a.status != 200 {
		t.Errorf("a list: %d", a.status)
	}
	guard.Leave(mark)
	if a := s.ask("POST", "/v1/campaigns/phone/claims", "", asUser); a.status != 201 {
		t.Errorf("when there is room again: %d %s", a.status, a.body)
	}
}
