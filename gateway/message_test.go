package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// FuzzMessage has anything at all arrive: it is one of the messages there are,
// with members that may be used, or ends the connection with a reason that can
// be sent.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"auth","token":"x"}`,
		`{"type":"claim","id":"1","campaign_id":"c","quantity":2,"device":"d","ticket":"t","admission":"a"}`,
		`{"type":"subscribe","campaign_id":"c","after":"1.2.3.1"}`,
		`{"type":"unsubscribe","campaign_id":"c"}`, `{"type":"ping","id":"7"}`,
		`{"type":"claim","id":"1","user_id":"2"}`, `{"type":1}`, `[]`, `null`, `{}`, "", "\xff", `{"type":"ping"} x`,
		`{"type":"claim","id":"1","quantity":1e400}`, strings.Repeat(`{"a":`, 100),
	} {
		f.Add([]byte(seed))
	}
	h := &Hub{cfg: Config{}.WithDefaults()}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, bad := parse(raw)
		if (m == nil) == (bad == nil) {
			t.Fatalf("%q is %v and %v", raw, m, bad)
		}
		if bad != nil {
			switch bad.code {
			case websocket.StatusInvalidFramePayloadData, websocket.StatusPolicyViolation:
			default:
				t.Errorf("%q: code %d", raw, bad.code)
			}
			sent := h.encode(failure{Type: typeError, ID: bad.id, refusal: (&conn{}).refusalOf(&web.Problem{Reason: bad.reason, Detail: bad.detail})})
			if !json.Valid(sent) || len(closeReason(bad.detail.EN)) > maxCloseReason || !utf8.ValidString(closeReason(bad.detail.EN)) {
				t.Errorf("%q is told %q", raw, sent)
			}
			return
		}
		if !json.Valid(raw) || !utf8.Valid(raw) {
			t.Errorf("%q is %+v", raw, m)
		}
		if id, _ := namesIn(m); id != "" && !web.IsVisible(id, dibs.MaxKeyLen) {
			t.Errorf("%q has the id %q", raw, id)
		}
		if s, ok := m.(*topicMessage); ok {
			if mark, ok := dibs.ParseMark(s.After); ok {
				if again, ok := dibs.ParseMark(mark.String()); !ok || again != mark {
					t.Errorf("the mark %q is %v, then %v", s.After, mark, again)
				}
			}
		}
	})
}
