package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
)

// A tap is answered, once for each time it is sent, and the same id is the same
// claim: on this connection, on another one, and over HTTP.
func TestTap(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{})
	sale := r.sale(1)
	p := r.join("42")
	m := p.claim(sale, "tap-1")
	claim, _ := m["claim"].(map[string]any)
	if m["outcome"] != "granted" || m["replayed"] != nil || claim["user_id"] != "42" || claim["campaign_id"] != sale {
		t.Fatalf("the first tap: %v", m)
	}
	for _, again := range []*peer{p, r.join("42")} {
		m := again.claim(sale, "tap-1")
		if c, _ := m["claim"].(map[string]any); m["replayed"] != true || c["id"] != claim["id"] {
			t.Fatalf("the tap again: %v", m)
		}
	}
	req, err := http.NewRequest(http.MethodPost, r.url+"/v1/campaigns/"+sale+"/claims", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer dev_42")
	req.Header.Set("Idempotency-Key", "tap-1")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the tap again over HTTP: %s", resp.Status)
	}
	if n := r.granted(sale); n != 1 {
		t.Errorf("%d granted", n)
	}
}

// A refusal says why, with its code, in the user's language.
func TestRefusal(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{})
	sale := r.sale(1)
	r.join("42").claim(sale, "first")
	for _, c := range []struct {
		language, detail string
	}{{"en", "nothing is left"}, {"zh-CN", "已全部领完"}} {
		m := r.join("43", "Accept-Language", c.language).claim(sale, "tap")
		if m["outcome"] != "sold_out" || m["reason"] != "sold_out" || m["code"] != 30006.0 || m["retryable"] != true || m["detail"] != c.detail ||
			m["remaining"] != 0.0 || m["request_id"] == "" || m["claim"] != nil || m["type"] != "result" {
			t.Errorf("%s: %v", c.language, m)
		}
	}
	p := r.join("44")
	for campaign, reason := range map[string]string{"none": "not_found", "a b": "not_found", "": "not_found"} {
		if m := p.claim(campaign, "x"); m["outcome"] != reason {
			t.Errorf("campaign %q: %v", campaign, m)
		}
	}
	p.send(message{"type": "claim", "id": "y", "campaign_id": sale, "quantity": 0})
	if m := p.next("result"); m["outcome"] != "invalid_request" {
		t.Errorf("quantity 0: %v", m)
	}
	p.send(message{"type": "claim", "id": "z", "campaign_id": sale, "device": strings.Repeat("d", dibs.MaxDeviceLen+1)})
	if m := p.next("result"); m["outcome"] != "invalid_request" || !strings.Contains(fmt.Sprint(m["errors"]), "/Dibs-Device") {
		t.Errorf("a long device: %v", m)
	}
}

// Bytes that are no message, or too long a message, end the connection with a reason
// and the right code, and grant nothing.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{MaxMessage: 1000})
	sale := r.sale(5)
	long := `{"type":"claim","id":"1","campaign_id":"` + sale + `","device":"` + strings.Repeat("x", 1000) + `"}`
	for name, c := range map[string]struct {
		raw    string
		kind   websocket.MessageType
		code   websocket.StatusCode
		reason string
	}{
		"no JSON":          {`tap!`, websocket.MessageText, websocket.StatusInvalidFramePayloadData, "invalid_request"},
		"an array":         {`[]`, websocket.MessageText, websocket.StatusInvalidFramePayloadData, "invalid_request"},
		"a half":           {`{"type":"claim"`, websocket.MessageText, websocket.StatusInvalidFramePayloadData, "invalid_request"},
		"two":              {`{"type":"ping"}{"type":"ping"}`, websocket.MessageText, websocket.StatusInvalidFramePayloadData, "invalid_request"},
		"not UTF-8":        {"{\"type\":\"ping\",\"id\":\"\xff\"}", websocket.MessageText, websocket.StatusInvalidFramePayloadData, "invalid_request"},
		"binary":           {`{"type":"ping"}`, websocket.MessageBinary, websocket.StatusUnsupportedData, "invalid_request"},
		"too long":         {long, websocket.MessageText, websocket.StatusMessageTooBig, "invalid_request"},
		"much too long":    {long + strings.Repeat(" ", 100_000), websocket.MessageText, websocket.StatusMessageTooBig, "invalid_request"},
		"unknown type":     {`{"type":"grant","campaign_id":"` + sale + `"}`, websocket.MessageText, websocket.StatusPolicyViolation, "invalid_request"},
		"unknown member":   {`{"type":"claim","id":"1","campaign_id":"` + sale + `","user_id":"7"}`, websocket.MessageText, websocket.StatusPolicyViolation, "invalid_request"},
		"wrong kind":       {`{"type":"claim","id":"1","campaign_id":"` + sale + `","quantity":"1"}`, websocket.MessageText, websocket.StatusPolicyViolation, "invalid_request"},
		"no id":            {`{"type":"claim","campaign_id":"` + sale + `"}`, websocket.MessageText, websocket.StatusPolicyViolation, "invalid_request"},
		"an id of spaces":  {`{"type":"claim","id":"a b","campaign_id":"` + sale + `"}`, websocket.MessageText, websocket.StatusPolicyViolation, "invalid_request"},
		"a false token":    {`{"type":"auth","token":"eyJ.x.y"}`, websocket.MessageText, gateway.CloseUnauthenticated, "unauthenticated"},
		"another's token":  {`{"type":"auth","token":"dev_other"}`, websocket.MessageText, gateway.CloseUnauthenticated, "forbidden"},
		"a mark of nobody": {`{"type":"subscribe","campaign_id":"` + sale + `","after":"x"}`, websocket.MessageText, websocket.StatusPolicyViolation, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &peer{rig: &rig{TB: t, hub: r.hub, url: r.url}, ws: r.join("bad").ws}
			p.sendRaw(c.kind, []byte(c.raw))
			if m := p.next("error"); m["reason"] != c.reason || m["detail"] == "" {
				t.Errorf("%v", m)
			}
			if code := p.ended(); code != c.code {
				t.Errorf("closed with %d", code)
			}
		})
	}
	if n := r.granted(sale); n != 0 {
		t.Errorf("%d granted", n)
	}
}

// Nobody acts without a token, and nobody stays without one.
func TestNoToken(t *testing.T) {
	t.Parallel()
	patiently, briefly := start(t, gateway.Config{AuthWithin: patience}), start(t, gateway.Config{AuthWithin: 50 * time.Millisecond})
	sale := patiently.sale(1)
	for _, m := range []message{
		{"type": "claim", "id": "1", "campaign_id": sale},
		{"type": "subscribe", "campaign_id": sale},
		{"type": "auth", "token": ""},
		{"type": "auth", "token": "dibs_admin_key"},
		nil,
	} {
		r := briefly
		if m != nil {
			r = patiently
		}
		p := r.dial()
		if m != nil {
			p.send(m)
		}
		if e := p.next("error"); e["reason"] != "unauthenticated" || e["code"] != 10002.0 {
			t.Errorf("%v: %v", m, e)
		} else if e["retryable"] != (m == nil) {
			t.Errorf("%v: who was too slow may try again with the same token, nobody else: %v", m, e)
		}
		if code := p.ended(); code != gateway.CloseUnauthenticated {
			t.Errorf("%v: closed with %d", m, code)
		}
	}
	if n := patiently.granted(sale); n != 0 {
		t.Errorf("%d granted", n)
	}
}

// A connection lasts as long as its token; a new one in time makes it last.
func TestTokenExpires(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{})
	token := func(ttl time.Duration) string {
		raw, err := httpapi.IssueToken([]byte("a secret of at least 32 bytes ..."), "42", ttl)
		must(t, err)
		return raw
	}
	lasting, brief := r.dial(), r.dial()
	for _, p := range []*peer{lasting, brief} {
		// The API allows half a minute between the clocks: this is soon over, so nothing comes between.
		p.send(message{"type": "auth", "token": token(-25 * time.Second)})
		if w := p.next("welcome"); w["expires_at"] == nil {
			t.Errorf("%v", w)
		}
		if p == lasting {
			p.send(message{"type": "auth", "token": token(time.Hour)})
			p.next("welcome")
		}
	}
	if e := brief.next("error"); e["reason"] != "unauthenticated" {
		t.Errorf("%v", e)
	}
	if code := brief.ended(); code != gateway.CloseUnauthenticated {
		t.Errorf("closed with %d", code)
	}
	lasting.send(message{"type": "ping", "id": "7"})
	if m := lasting.next("pong"); m["id"] != "7" || m["at"] == nil {
		t.Errorf("%v", m)
	}
}

// The same id for another campaign is another claim, also while the first is
// under way: both are answered.
func TestOneIDForTwoCampaigns(t *testing.T) {
	t.Parallel()
	h := hold(shared.Claims)
	r := start(t, gateway.Config{Claims: h})
	t.Cleanup(h.release)
	one, two := r.sale(1), r.sale(1)
	p := r.join("42")
	for _, campaign := range []string{one, two, one} {
		p.send(message{"type": "claim", "id": "tap", "campaign_id": campaign})
	}
	// The message that is read after the three says that they were taken.
	p.send(message{"type": "ping"})
	p.next("pong")
	h.release()
	answers := map[any]any{}
	for range 2 {
		m := p.next("result")
		answers[m["campaign_id"]] = m["outcome"]
	}
	if answers[one] != "granted" || answers[two] != "granted" {
		t.Errorf("%v", answers)
	}
	p.send(message{"type": "ping"})
	p.next("pong")
}

// A claim under way that is sent again above the rate has one answer, its own.
func TestTooFastForAClaimUnderWay(t *testing.T) {
	t.Parallel()
	h := hold(shared.Claims)
	r := start(t, gateway.Config{Claims: h, MessageRate: 1, MessageBurst: 10})
	t.Cleanup(h.release)
	sale := r.sale(1)
	p := r.join("42")
	p.send(message{"type": "claim", "id": "tap", "campaign_id": sale})
	<-h.reached
	for range 16 {
		p.send(message{"type": "claim", "id": "tap", "campaign_id": sale})
	}
	p.send(message{"type": "ping", "id": "above"})
	if m := p.next("error"); m["id"] != "above" || m["reason"] != "rate_limited" {
		t.Errorf("%v", m)
	}
	// A client that subscribes has to know which one to ask for again.
	p.send(message{"type": "subscribe", "campaign_id": sale})
	if m := p.next("error"); m["campaign_id"] != sale || m["retry_after_ms"] == nil {
		t.Errorf("%v", m)
	}
	h.release()
	if m := p.next("result"); m["id"] != "tap" || m["outcome"] != "granted" {
		t.Errorf("%v", m)
	}
}
