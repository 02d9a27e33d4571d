package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/webhooks"
)

// memory is a source with webhooks alone, in memory.
type memory struct {
	Feed
	Endpoints
	mu        sync.Mutex
	endpoints []webhooks.WebhookEndpoint
	list      []webhooks.WebhookDelivery
	// failing makes FinishDeliveries fail; finished counts its calls.
	failing  bool
	finished int
	trimmed  time.Time
	// takes is how long FinishDeliveries takes, noted when it returned last, and
	// left when the sink was let go.
	takes       time.Duration
	noted, left time.Time
}

func (m *memory) HoldSink(_ context.Context, name, owner string, _ time.Duration) (events.SinkState, error) {
	return events.SinkState{Name: name, Owner: owner}, nil
}

func (m *memory) After(_ context.Context, after int64, _ int) ([]events.Event, int64, error) {
	return nil, after, nil
}

func (m *memory) LetSinkGo(context.Context, string, string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = time.Now()
	return nil
}

func (m *memory) List(context.Context) ([]webhooks.WebhookEndpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.endpoints), nil
}

func (m *memory) Disable(_ context.Context, id, reason string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.endpoints {
		if m.endpoints[i].ID == id {
			m.endpoints[i].Disabled, m.endpoints[i].DisabledReason = true, reason
		}
	}
	return nil
}

func (m *memory) NoteAttempts(_ context.Context, id string, good bool) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.endpoints {
		e := &m.endpoints[i]
		switch {
		case e.ID != id:
		case good:
			e.FailingSince = time.Time{}
		case e.FailingSince.IsZero():
			e.FailingSince = time.Now()
		default:
			return time.Since(e.FailingSince), nil
		}
	}
	return 0, nil
}

func (m *memory) WaitingDeliveries(_ context.Context, id string, since time.Time, most int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.list {
		if m.list[i].Endpoint == id && m.list[i].Status == webhooks.DeliveryPending && !m.list[i].CreatedAt.Before(since) {
			n++
		}
	}
	return min(n, most), nil
}

func (m *memory) DueDeliveries(_ context.Context, id string, now time.Time, most int) (due []webhooks.WebhookDelivery, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.list {
		d := m.list[i]
		if d.Endpoint == id && d.Status == webhooks.DeliveryPending && !d.NextAt.After(now) && len(due) < most {
			due = append(due, d)
		}
	}
	return due, nil
}

func (m *memory) FinishDeliveries(ctx context.Context, list []webhooks.WebhookDelivery) error {
	wait.Sleep(ctx, m.takes)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished++
	m.noted = time.Now()
	if m.failing {
		return errors.New("the ledger does not answer")
	}
	for _, d := range list {
		m.list[d.ID] = d
	}
	return nil
}

func (m *memory) TrimDeliveries(_ context.Context, before time.Time) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trimmed = before
	return 0, nil
}

// queue adds a delivery that is due at once, of a subject of its own.
func (m *memory) queue(endpoint string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := int64(len(m.list))
	m.list = append(m.list, webhooks.WebhookDelivery{
		ID: id, Endpoint: endpoint, EventID: fmt.Sprint(id), Subject: fmt.Sprint(id), Status: webhooks.DeliveryPending, NextAt: time.Now(), CreatedAt: time.Now(),
	})
	return id
}

// enable is what an administrator does later to an endpoint that is disabled.
func (m *memory) enable(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &m.endpoints[i]
	e.Disabled, e.DisabledReason, e.UpdatedAt = false, "", time.Now()
}

// get returns the endpoint, and a delivery.
func (m *memory) get(id int64) (webhooks.WebhookEndpoint, webhooks.WebhookDelivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.endpoints[0], m.list[id]
}

// wire answers requests without a network.
type wire func(r *http.Request) *http.Response

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r), nil }

func says(status int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody}
}

// hooked runs webhooks with one endpoint, whose answers are given, in a bubble.
func hooked(t *testing.T, cfg WebhookConfig, poll time.Duration, answer wire, test func(t *testing.T, m *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{endpoints: []webhooks.WebhookEndpoint{{ID: "e", URL: "https://shop.example/hook", Secret: "whsec_MDEyMw=="}}}
		c := Config{Feed: m, Endpoints: m, Webhooks: cfg, Poll: poll, Lease: 20 * time.Second, Owner: "me"}
		c.Logger = c.withDefaults().Logger
		w := newWebhooks(&c)
		w.post.client.Transport = answer
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.run(ctx) })
		defer running.Wait()
		defer cancel()
		test(t, m)
	})
}

// TestSchedule: an event is posted again after each pause of the schedule, and
// no sooner, for as often as there are pauses; then it is given up.
func TestSchedule(t *testing.T) {
	t.Parallel()
	var at []time.Time
	fails := func(*http.Request) *http.Response {
		at = append(at, time.Now())
		return says(500)
	}
	hooked(t, WebhookConfig{}, 5*time.Second, fails, func(t *testing.T, m *memory) {
		id := m.queue("e")
		wait.Sleep(t.Context(), 40*time.Hour)
		if _, d := m.get(id); d.Status != webhooks.DeliveryFailed || d.Attempts != 11 || len(at) != 11 || d.Problem != "500 Internal Server Error" {
			t.Fatalf("after %d attempts, the delivery is %+v", len(at), d)
		}
		for i, pause := range webhookSchedule {
			// An endpoint of which everything fails rests too, up to a minute.
			if took := at[i+1].Sub(at[i]); took < pause || took > pause+restMax+10*time.Second {
				t.Errorf("the pause %d took %s, not %s", i, took, pause)
			}
		}
	})
}

// TestRetryAfter: an endpoint that asks to be left alone is, up to an hour.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	var at []time.Time
	asks := []string{"3000", "1000000", "soon", "-5"}
	busy := func(*http.Request) *http.Response {
		at = append(at, time.Now())
		if len(at) > len(asks) {
			return says(204)
		}
		return says(503, "Retry-After", asks[len(at)-1])
	}
	hooked(t, WebhookConfig{}, 5*time.Second, busy, func(t *testing.T, m *memory) {
		id := m.queue("e")
		wait.Sleep(t.Context(), 12*time.Hour)
		if _, d := m.get(id); d.Status != webhooks.DeliveryDelivered || len(at) != 5 {
			t.Fatalf("after %d attempts, the delivery is %+v", len(at), d)
		}
		for i, pause := range []time.Duration{3000 * time.Second, time.Hour, webhookSchedule[2], webhookSchedule[3]} {
			if took := at[i+1].Sub(at[i]); took < pause || took > pause+restMax+10*time.Second {
				t.Errorf("asked for %s, the pause took %s", asks[i], took)
			}
		}
	})
}

// TestGivenUp: an endpoint of which every attempt fails is disabled after five
// days, with a reason; one good answer begins these anew.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	var good bool
	answer := func(*http.Request) *http.Response {
		if good {
			return says(200)
		}
		return says(502)
	}
	day := 24 * time.Hour
	hooked(t, WebhookConfig{}, time.Minute, answer, func(t *testing.T, m *memory) {
		pass := func(d time.Duration) webhooks.WebhookEndpoint {
			for range d / (6 * time.Hour) {
				m.queue("e")
				wait.Sleep(t.Context(), 6*time.Hour)
			}
			e, _ := m.get(0)
			return e
		}
		if e := pass(4 * day); e.Disabled || e.FailingSince.IsZero() {
			t.Fatalf("after four days the endpoint is %+v", e)
		}
		good = true
		if e := pass(day); e.Disabled || !e.FailingSince.IsZero() {
			t.Fatalf("after a good day the endpoint is %+v", e)
		}
		good = false
		if e := pass(4*day + 12*time.Hour); e.Disabled {
			t.Fatalf("the endpoint is disabled too early: %s", e.DisabledReason)
		}
		if e := pass(day); !e.Disabled || e.DisabledReason != "every attempt failed for 5 days" {
			t.Errorf("after five days the endpoint is %+v", e)
		}
		if kept := time.Since(m.trimmed); kept < 7*day || kept > 7*day+time.Hour {
			t.Errorf("what is older than %s was dropped", kept)
		}
	})
}

// TestUnreachableWebhookIsTold: the log names an endpoint at whose port nothing listens
// after the first round, once for many rounds, and says when it takes events again.
func TestUnreachableWebhookIsTold(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	var out bytes.Buffer
	m := &memory{endpoints: []webhooks.WebhookEndpoint{{ID: "e", URL: closed.URL + "/?token=hush", Secret: "whsec_MDEyMw=="}}}
	w := newWebhooks(&Config{
		Feed: m, Endpoints: m, Webhooks: WebhookConfig{AllowPrivate: true}, Lease: time.Hour, Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	defer func() {
		if err := w.post.close(); err != nil {
			t.Error(err)
		}
	}()
	w.held(time.Now())
	round := func() {
		m.queue("e")
		e, _ := m.get(0)
		if _, err := w.round(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if first := out.String(); strings.Count(first, "\n") != 1 || !strings.Contains(first, "a webhook cannot be reached") ||
		!strings.Contains(first, "endpoint=e") || !strings.Contains(first, "the connection was refused") || strings.Contains(first, "hush") {
		t.Errorf("after one round the log is:\n%s", first)
	}
	for range 5 {
		round()
	}
	m.endpoints[0].URL = server.URL
	round()
	round()
	if all := out.String(); strings.Count(all, "\n") != 2 || !strings.Contains(all, "a webhook takes events again") {
		t.Errorf("in the end the log is:\n%s", all)
	}
}

// one is a feed with one event, and keeps how far its sink is.
type one struct {
	memory
	taken int64
}

func (o *one) HoldSink(_ context.Context, name, owner string, _ time.Duration) (events.SinkState, error) {
	return events.SinkState{Name: name, Owner: owner, Taken: o.taken}, nil
}

func (o *one) After(_ context.Context, after int64, _ int) ([]events.Event, int64, error) {
	return make([]events.Event, 1-after), 1, nil
}

func (o *one) TakeNews(_ context.Context, t events.Taking) error {
	o.taken = t.To
	return nil
}

func (o *one) SinkFailed(context.Context, string, string, string) error { return nil }

// TestSinkTakesEventsAgain: the log says that a sink takes events again when it does, and not when the node stops.
func TestSinkTakesEventsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tries := 0
		d := &dispatcher{
			src: &one{}, name: "s", owner: "me", poll: time.Second, lease: 20 * time.Second, log: slog.New(slog.NewTextHandler(&out, nil)),
			begun: time.Now(), stop: func() error { return nil },
			hand: func(context.Context, []events.Event, *events.Taking) (bool, error) {
				if tries++; tries < 3 {
					return false, errors.New("refused")
				}
				return false, nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.run(ctx)
		}()
		wait.Sleep(t.Context(), time.Minute)
		synctest.Wait()
		if said := out.String(); strings.Count(said, "events wait") != 1 || strings.Count(said, "a sink takes events again") != 1 {
			t.Errorf("the log is:\n%s", said)
		}
		cancel()
		<-ended
		if said := out.String(); strings.Count(said, "\n") != 2 {
			t.Errorf("in the end the log is:\n%s", said)
		}
	})
}

// TestMaxWaiting: an endpoint that is too slow for what happens is disabled
// before its deliveries fill the ledger.
func TestMaxWaiting(t *testing.T) {
	t.Parallel()
	slow := func(r *http.Request) *http.Response {
		wait.Sleep(r.Context(), 5*time.Second)
		return says(200)
	}
	hooked(t, WebhookConfig{MaxWaiting: 1000}, 200*time.Millisecond, slow, func(t *testing.T, m *memory) {
		for range 1000 {
			m.queue("e")
		}
		wait.Sleep(t.Context(), 3*time.Minute)
		if e, _ := m.get(0); e.Disabled {
			t.Fatalf("with no more than the most, it is disabled: %s", e.DisabledReason)
		}
		for range 1000 {
			m.queue("e")
		}
		wait.Sleep(t.Context(), 2*time.Minute)
		if e, _ := m.get(0); !e.Disabled || e.DisabledReason != "more than 1000 deliveries waited for it" {
			t.Errorf("the endpoint is %+v", e)
		}
		m.enable(0)
		wait.Sleep(t.Context(), 2*time.Minute)
		if e, _ := m.get(0); e.Disabled {
			t.Errorf("enabled again, it is disabled for what had waited before: %s", e.DisabledReason)
		}
	})
}

// TestManyDeliveries: who takes everything at once gets as much as he takes, not
// one round for each look.
func TestManyDeliveries(t *testing.T) {
	t.Parallel()
	takes := func(*http.Request) *http.Response { return says(200) }
	hooked(t, WebhookConfig{}, 200*time.Millisecond, takes, func(t *testing.T, m *memory) {
		for range 40 * roundMost {
			m.queue("e")
		}
		wait.Sleep(t.Context(), 2*time.Second)
		if n, err := m.WaitingDeliveries(t.Context(), "e", time.Time{}, 1<<20); n > 0 || err != nil {
			t.Errorf("%d wait still, %v", n, err)
		}
	})
}

// TestLedgerAway: while the ledger does not take what became of attempts,
// nothing is posted again, and the ledger is asked ever more rarely.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	posts := map[string]int{}
	takes := func(r *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		posts[r.Header.Get("Webhook-Id")]++
		return says(200)
	}
	hooked(t, WebhookConfig{}, 200*time.Millisecond, takes, func(t *testing.T, m *memory) {
		m.mu.Lock()
		m.failing = true
		m.mu.Unlock()
		for range 100 {
			m.queue("e")
		}
		wait.Sleep(t.Context(), time.Hour)
		m.mu.Lock()
		if m.finished < 10 || m.finished > 80 {
			t.Errorf("in an hour, the ledger was asked %d times", m.finished)
		}
		m.failing = false
		m.mu.Unlock()
		wait.Sleep(t.Context(), 5*time.Minute)
		for id := range int64(100) {
			if _, d := m.get(id); d.Status != webhooks.DeliveryDelivered || posts[d.EventID] != 1 {
				t.Errorf("the delivery %d was posted %d times, and is %s", id, posts[d.EventID], d.Status)
			}
		}
	})
}

// TestLetGoOnceNoted: a node that stops lets go of the webhooks when what it has posted
// is noted, and no sooner: the next one would post it again.
func TestLetGoOnceNoted(t *testing.T) {
	t.Parallel()
	var m *memory
	hooked(t, WebhookConfig{}, 10*time.Millisecond, func(*http.Request) *http.Response { return says(204) }, func(t *testing.T, is *memory) {
		m = is
		m.takes = 3 * time.Second
		m.queue("e")
		wait.Sleep(t.Context(), time.Second)
	})
	if m.finished != 1 || m.list[0].Status != webhooks.DeliveryDelivered || m.left.Before(m.noted) {
		t.Errorf("%s is noted at %s, and let go at %s", m.list[0].Status, m.noted, m.left)
	}
}

// owned is a source whose sink another process has until it is let go.
type owned struct {
	memory
	owner string
	held  chan struct{}
}

func (o *owned) HoldSink(_ context.Context, name, owner string, _ time.Duration) (events.SinkState, error) {
	if o.owner == "" || o.owner == owner {
		o.owner = owner
		select {
		case o.held <- struct{}{}:
		default:
		}
	}
	return events.SinkState{Name: name, Owner: o.owner}, nil
}

func (o *owned) LetSinkGo(_ context.Context, _, owner string) error {
	if o.owner == owner {
		o.owner = ""
	}
	return nil
}

// TestAlone: a node that is alone on its ledger does not wait for the lease of
// one that died, and a node that is not waits.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := &owned{owner: "the dead", held: make(chan struct{}, 1)}
			cfg := Config{Feed: o, Endpoints: o, Alone: alone, Owner: "me"}.withDefaults()
			d := &dispatcher{
				src: o, name: "s", owner: cfg.Owner, poll: cfg.Poll, lease: cfg.Lease, alone: cfg.Alone, log: cfg.Logger,
				begun: time.Now(), stop: func() error { return nil },
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			d.run(ctx)
			select {
			case <-o.held:
				if !alone {
					t.Error("a lease was broken")
				}
			default:
				if alone {
					t.Error("the lease of a process that is dead was waited for")
				}
			}
		})
	}
}

// away is a feed whose ledger does not answer.
type away struct{ memory }

var errAway = errors.New("the ledger is away")

func (*away) HoldSink(context.Context, string, string, time.Duration) (events.SinkState, error) {
	return events.SinkState{}, errAway
}

// TestStartMakesSinksKnown: when Start returns, the ledger knows each sink. A new one that it learned of later would miss
// what happened until then.
func TestStartMakesSinksKnown(t *testing.T) {
	feed := &away{}
	d, err := Start(Config{Feed: feed, Endpoints: feed, Sinks: []string{"redis://127.0.0.1:1?stream=shop"}})
	if !errors.Is(err, errAway) {
		t.Errorf("Start returned %v without the ledger", err)
	}
	if d != nil {
		d.Close()
	}
}
