package sinks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/dibs-dev/dibs/webhooks"
)

// asCloudEvent has the SDK of CloudEvents read a message in structured mode, by the
// type that it says of itself.
func asCloudEvent(t testing.TB, contentType string, body []byte) {
	t.Helper()
	if contentType != event.ApplicationCloudEventsJSON {
		t.Errorf("the content type is %q", contentType)
	}
	var e event.Event
	if err := json.Unmarshal(body, &e); err != nil {
		t.Errorf("the SDK reads %s: %v", body, err)
	} else if err := e.Validate(); err != nil {
		t.Errorf("the SDK says of %s: %v", body, err)
	}
}

// TestWebhooksByTheStandards: the SDK of CloudEvents reads what arrives, and the
// library of Standard Webhooks accepts its signature, without a word from dibs'
// own packages.
func TestWebhooksByTheStandards(t *testing.T) {
	t.Parallel()
	type arrival struct {
		event     *event.Event
		encoding  binding.Encoding
		eventErr  error
		signature func(secret string) error
	}
	arrived := make(chan arrival, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		message := cehttp.NewMessageFromHttpRequest(req)
		a := arrival{encoding: message.ReadEncoding(), signature: func(secret string) error {
			verifier, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				return err
			}
			return verifier.Verify(body, req.Header)
		}}
		a.event, a.eventErr = binding.ToEvent(context.Background(), message)
		arrived <- a
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	s := hooked(t, true, 4)
	endpoint := s.endpoint(webhooks.EndpointSpec{URL: server.URL})
	ids := s.buy("standards", 1)
	// The grant and the steps after it, as the claims of buy have them.
	for a := range arrived {
		if a.eventErr != nil || a.encoding != binding.EncodingStructured {
			t.Fatalf("the SDK reads encoding %v: %v", a.encoding, a.eventErr)
		}
		if err := a.event.Validate(); err != nil {
			t.Error(err)
		}
		if err := a.signature(endpoint.Secret); err != nil {
			t.Errorf("%s: %v", a.event.Type(), err)
		}
		if err := a.signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"); err == nil {
			t.Error("another secret is accepted too")
		}
		if a.event.Type() != "dev.dibs.claim.granted" || a.event.Subject() != ids[0] {
			continue
		}
		var data struct{ Claim struct{ ID string } }
		if err := a.event.DataAs(&data); err != nil || data.Claim.ID != ids[0] {
			t.Errorf("the data is %+v: %v", data, err)
		}
		return
	}
}
