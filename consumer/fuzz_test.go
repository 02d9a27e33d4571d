package consumer_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/events/sinks"
)

// FuzzVerify: a webhook is taken when the secret has signed exactly what arrived, and never
// else.
func FuzzVerify(f *testing.F) {
	now := time.Unix(1614265330, 0)
	body := []byte(`{"specversion":"1.0","id":"c.1","type":"x","subject":"c","time":"2026-12-01T04:00:00Z","data":{}}`)
	signature, err := sinks.Sign("c.1", now, body, secret)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("c.1", "1614265330", signature, body)
	f.Add("c.1", "1614265330", "v1,", body)
	f.Add("c.1", "+1614265330", signature+" v1,x", body)
	f.Add("", "9223372036854775807", "v2,"+signature, []byte(`{}`))
	f.Add("c.1.1614265330", "", signature, body)
	f.Fuzz(func(t *testing.T, id, stamp, signatures string, sent []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(sent))
		r.Header = http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signatures}}
		e, err := consumer.Verify(r, now, secret)
		if err == nil && (e == nil || e.ID != "c.1" || id != "c.1" || stamp != "1614265330" || !bytes.Equal(sent, body)) {
			t.Fatalf("%q at %q with %q and %q is taken", id, stamp, signatures, sent)
		}
	})
}
