package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/livestats"
)

// oneMeasure are meters that have one measure of everything.
type oneMeasure struct{}

func (oneMeasure) Follow(_ context.Context, id string, take func(livestats.Measure) error) error {
	return take(livestats.Measure{CampaignID: id, Stats: api.StatsView{Refused: map[string]int64{}}})
}

// fakeRehearsals have two rehearsals, which are over; the second has a report.
type fakeRehearsals struct{}

func (*fakeRehearsals) Start(_ context.Context, req httpapi.RehearsalRequest) (httpapi.RehearsalView, error) {
	return httpapi.RehearsalView{ID: "r-1", State: httpapi.RehearsalRunning, Request: req, Promises: []httpapi.RehearsalVerdict{}}, nil
}

func (*fakeRehearsals) Find(id string) (httpapi.RehearsalView, <-chan struct{}, error) {
	if id != "r-1" && id != "r-2" {
		return httpapi.RehearsalView{}, nil, dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such rehearsal", ZH: "没有该演练"})
	}
	v := httpapi.RehearsalView{
		ID: id, State: httpapi.RehearsalDone,
		Promises: []httpapi.RehearsalVerdict{{Promise: "no oversell", Finding: "held", Witness: "answers", Detail: "3 of 3", DetailZH: "3 件"}},
	}
	if id == "r-2" {
		v.Report, v.ReportZH = json.RawMessage(`{"ok":true}`), json.RawMessage(`{"ok":"是"}`)
	}
	return v, make(chan struct{}), nil
}

// The console is at each of its addresses, and the same for all of them.
func TestConsolePage(t *testing.T) {
	s := newStack(t, nil)
	first := s.ask("GET", "/console/", "", asBrowser)
	deep := s.ask("GET", "/console/campaigns/phone-noon?x=1", "", asBrowser)
	if first.status != 200 || deep.body != first.body || !strings.Contains(first.body, "/console/main.js") {
		t.Errorf("%d %d", first.status, deep.status)
	}
	if a := s.ask("GET", "/console/", "", "If-None-Match: "+first.header.Get("ETag")); a.status != http.StatusNotModified {
		t.Errorf("with its tag: %d", a.status)
	}
}

// A stream says what there is, refuses who may not see it, and ends with the server.
func TestStatsStream(t *testing.T) {
	s := newStack(t, nil)
	s.sale("flow", 5, 1)
	a := s.ask("GET", "/v1/campaigns/flow/stats/stream", "", asAdmin)
	if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" || !strings.Contains(a.body, "event: measure\ndata: {\"campaign_id\":\"flow\"") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	for _, c := range []struct {
		path   string
		as     []string
		status int
	}{
		{"/v1/campaigns/none/stats/stream", []string{asAdmin}, 404},
		{"/v1/campaigns/flow/stats/stream", nil, 401},
		{"/v1/campaigns/flow/stats/stream", []string{asUser}, 403},
		{"/v1/rehearsals/none/stream", []string{asAdmin}, 404},
	} {
		if a := s.ask("GET", c.path, "", c.as...); a.status != c.status || a.json["reason"] == nil {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
	}
}

// endless are meters that go on until they are stopped.
type endless struct{}

func (endless) Follow(ctx context.Context, _ string, take func(livestats.Measure) error) error {
	err := take(livestats.Measure{})
	<-ctx.Done()
	return errors.Join(err, ctx.Err())
}

// A stream ends when the server stops, and when the key is revoked.
func TestStreamsEnd(t *testing.T) {
	svc := newService(t)
	stopping, stop := context.WithCancel(context.Background())
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), Meters: endless{}, Stopping: stopping})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("flow", 5, 1)
	ended := make(chan string, 1)
	follow := func() {
		req, err := http.NewRequest(http.MethodGet, s.url+"/v1/campaigns/flow/stats/stream", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+adminKey)
		resp, err := http.DefaultTransport.RoundTrip(req)
		must(t, err)
		read := bufio.NewReader(resp.Body)
		_, err = read.ReadString('\n')
		must(t, err)
		go func() {
			for err == nil {
				_, err = read.ReadString('\n')
			}
			_ = resp.Body.Close()
			ended <- err.Error()
		}()
	}
	follow()
	select {
	case why := <-ended:
		t.Fatalf("it ended before the server stopped: %s", why)
	case <-time.After(50 * time.Millisecond):
	}
	stop()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("it goes on after the server stopped")
	}
}

// A rehearsal is started by administrators, and followed to its end.
func TestRehearsals(t *testing.T) {
	s := newStack(t, nil)
	a := s.ask("POST", "/v1/rehearsals", `{"users":10,"requests":20,"stock":3}`, asAdmin)
	if a.status != 201 || a.header.Get("Location") != "/v1/rehearsals/r-1" || a.json["request"].(map[string]any)["users"] != 10.0 {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	for _, path := range []string{"/v1/rehearsals/r-2", "/v1/rehearsals/r-2/stream"} {
		en, zh := s.ask("GET", path, "", asAdmin).body, s.ask("GET", path, "", asAdmin, inChinese).body
		if !strings.Contains(en, `"detail":"3 of 3"`) || !strings.Contains(en, `"report":{"ok":true}`) || !strings.Contains(zh, `"detail":"3 件"`) || !strings.Contains(zh, `"report":{"ok":"是"}`) {
			t.Errorf("%s: %s, in Chinese %s", path, en, zh)
		}
	}
	if a := s.ask("GET", "/v1/rehearsals/r-1/stream", "", asAdmin); !strings.Contains(a.body, "event: rehearsal\ndata: {") || !strings.Contains(a.body, `"finding":"held"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret)})
	must(t, err)
	if a := serve(t, svc, h).ask("POST", "/v1/rehearsals", "{}", asAdmin); a.status != 404 {
		t.Errorf("where they are not allowed: %d %s", a.status, a.body)
	}
}
