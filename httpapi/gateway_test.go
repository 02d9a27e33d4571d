package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/tokens"
)

// onceGood verifies a token once; after that it has expired.
type onceGood struct {
	until time.Time
	asked int
}

func (o *onceGood) Verify(string) (string, time.Time, error) {
	if o.asked++; o.asked > 1 {
		return "", time.Time{}, errors.New("it has expired")
	}
	return "42", o.until, nil
}

// tickets is a gateway that makes tickets and keeps when they end.
type tickets struct {
	prometheus.Collector
	until time.Time
}

func (g *tickets) Ticket(_ context.Context, of tokens.Token) (string, time.Time, error) {
	g.until = of.Until
	return "a-ticket", of.Until, nil
}

func (*tickets) WebSocket(http.ResponseWriter, *http.Request, func(context.Context, string) (tokens.Token, error), dibs.Visitor) error {
	return nil
}

func (*tickets) Events(http.ResponseWriter, *http.Request, string, string, dibs.Visitor) error {
	return nil
}

// A ticket ends with the token that it was asked for with, also when that
// expires while the request is read: no session lasts forever.
func TestTicketEndsWithItsToken(t *testing.T) {
	// It is over already, so it is not remembered either.
	users := &onceGood{until: time.Now().Add(-time.Second)}
	g := &tickets{Collector: prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_gateway", Help: "Nothing."})}
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), Users: users, Gateway: g})
	must(t, err)
	a := serve(t, svc, h).ask("POST", "/v1/ws-tickets", "{}", "Authorization: Bearer eyJ.x.y")
	if a.status == http.StatusCreated && !g.until.Equal(users.until) {
		t.Errorf("the token ends at %s, the session of its ticket at %s", users.until, g.until)
	}
	if a.status != http.StatusCreated && a.status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A token whose secret is changed while the body of its call is under way gets no ticket.
func TestTicketWhileTheSecretChanges(t *testing.T) {
	users := tokens.OfSecret([]byte(jwtSecret), nil)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(newService(t)), Users: users, Gateway: newShortGateway()})
	must(t, err)
	for _, change := range []bool{false, true} {
		body, rest := io.Pipe()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/ws-tickets", body)
		r.ContentLength = -1
		r.Header.Set("Content-Type", "application/json")
		name, value, _ := strings.Cut(jwtFor(t, "42", time.Hour), ": ")
		r.Header.Set(name, value)
		done := make(chan int, 1)
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			done <- w.Code
		}()
		// The body is read after the first look at the token.
		_, err := io.WriteString(rest, "{")
		must(t, err)
		want := http.StatusCreated
		if change {
			users.SetSecrets([][]byte{[]byte("another secret of the tests, 32 b")})
			want = http.StatusUnauthorized
		}
		_, err = io.WriteString(rest, "}")
		must(t, err)
		must(t, rest.Close())
		if got := <-done; got != want {
			t.Errorf("the secret changed %v: %d, want %d", change, got, want)
		}
	}
}

// shortGateway has the routes of long-lived connections, and ends each at once.
type shortGateway struct{ prometheus.Collector }

func newShortGateway() shortGateway {
	return shortGateway{prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_short_gateway", Help: "Nothing."})}
}

func (shortGateway) WebSocket(http.ResponseWriter, *http.Request, func(context.Context, string) (tokens.Token, error), dibs.Visitor) error {
	return dibs.Fail(dibs.InvalidRequest, dibs.Text{EN: "ask for an upgrade"})
}

func (shortGateway) Events(w http.ResponseWriter, _ *http.Request, _, _ string, _ dibs.Visitor) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, err := w.Write([]byte("retry: 1000\n\n"))
	return err
}

func (shortGateway) Ticket(context.Context, tokens.Token) (string, time.Time, error) {
	return "a-ticket", time.Now().Add(time.Minute), nil
}
