package sinks_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events/sinks"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// The environment of the process that dies.
const (
	dyingDir  = "EVENTS_TEST_DIR"
	dyingSink = "EVENTS_TEST_SINK"
	dyingStep = "EVENTS_TEST_STEP"
)

// mortal is a source that kills its process at one step of publishing, when
// that comes for the third time. Steps of the webhooks begin with hook.
type mortal struct {
	sinks.Feed
	sinks.Endpoints
	step string
	mu   sync.Mutex
	left int
}

// at dies when this is the step.
func (m *mortal) at(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step != step {
		return
	}
	if m.left--; m.left > 0 {
		return
	}
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	fmt.Println("the process should be dead", err)
	select {}
}

func (m *mortal) After(ctx context.Context, after int64, max int) ([]events.Event, int64, error) {
	list, last, err := m.Feed.After(ctx, after, max)
	if len(list) > 0 {
		m.at("read, not published")
	}
	return list, last, err
}

func (m *mortal) TakeNews(ctx context.Context, t events.Taking) error {
	m.at("published, not noted")
	err := m.Feed.TakeNews(ctx, t)
	m.at("noted")
	return err
}

func (m *mortal) QueueDeliveries(ctx context.Context, t *events.Taking, list []webhooks.WebhookDelivery) error {
	m.at("hook: read, not queued")
	err := m.Endpoints.QueueDeliveries(ctx, t, list)
	m.at("hook: queued")
	return err
}

func (m *mortal) DueDeliveries(ctx context.Context, endpoint string, now time.Time, max int) ([]webhooks.WebhookDelivery, error) {
	list, err := m.Endpoints.DueDeliveries(ctx, endpoint, now, max)
	if len(list) > 0 {
		m.at("hook: due, not posted")
	}
	return list, err
}

func (m *mortal) FinishDeliveries(ctx context.Context, list []webhooks.WebhookDelivery) error {
	m.at("hook: posted, not noted")
	err := m.Endpoints.FinishDeliveries(ctx, list)
	m.at("hook: posted and noted")
	return err
}

// die runs a node that is killed at a step.
func die(dir, sink, step string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// The node's own webhooks look once and rest: those below take over.
	node, err := openNode(ctx, dir, sinks.Config{Poll: time.Hour, Lease: time.Millisecond, Webhooks: sinks.WebhookConfig{AllowPrivate: true}})
	if err != nil {
		return err
	}
	parts := node.Ledger.Parts()
	last := &mortal{step: step, left: 3}
	last.Feed = struct {
		*events.Events
		events.SinkLedger
	}{node.Service.Events, parts.Events}
	last.Endpoints = struct {
		*webhooks.Webhooks
		webhooks.DeliveryLedger
	}{node.Webhooks, parts.Webhooks}
	d, err := sinks.Start(sinks.Config{
		Feed: last, Endpoints: last, Sinks: []string{sink}, Poll: time.Millisecond, Alone: true,
		Webhooks: sinks.WebhookConfig{AllowPrivate: true},
	})
	if err != nil {
		return err
	}
	defer d.Close()
	fmt.Println("begun")
	for round := 0; ; round++ {
		if _, err := buy(ctx, node, fmt.Sprintf("dying-%d-%d", os.Getpid(), round), 10); err != nil {
			return err
		}
	}
}

// dying is a process that runs die.
type dying struct {
	t   *testing.T
	cmd *exec.Cmd
	out io.Reader
}

func startDying(t *testing.T, dir, sink, step string) *dying {
	t.Helper()
	d := &dying{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	d.cmd.Env = append(os.Environ(), dyingDir+"="+dir, dyingSink+"="+sink, dyingStep+"="+step)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if d.out = out; err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// kill ends the process now.
func (d *dying) kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
}

// wait waits until the process was killed.
func (d *dying) wait() {
	d.t.Helper()
	for lines := bufio.NewScanner(d.out); lines.Scan(); {
		if lines.Text() != "begun" {
			d.t.Errorf("the process says %s", lines.Text())
		}
	}
	var exit *exec.ExitError
	if err := d.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		d.t.Fatalf("the process ended with %v, and should have been killed", err)
	}
}

// hook is an endpoint that notes what it gets, and can hold its answers back.
type hook struct {
	*httptest.Server
	mu  sync.Mutex
	got [][2]string
	// held is told of a request that gets no answer; nil for answers.
	held chan struct{}
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		// Whoever posted it is dead.
		return
	}
	h.mu.Lock()
	h.got = append(h.got, [2]string{r.Header.Get("Webhook-Id"), string(body)})
	held := h.held
	h.mu.Unlock()
	if held != nil {
		select {
		case held <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}
}

// holdAnswers lets requests wait until whoever sent them is dead.
func (h *hook) holdAnswers(held chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = held
}

// all are the messages that came, in order.
func (h *hook) all() [][2]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([][2]string(nil), h.got...)
}

// TestKilledBetweenSteps kills a node between every two steps of publishing to a
// stream and to a webhook. Nothing is missing, what comes twice is the same, and
// without what comes twice the order of each claim is kept.
func TestKilledBetweenSteps(t *testing.T) {
	t.Parallel()
	r, h := redis(t), newHook(t)
	g := newGate(t, r.Addr())
	dir, sink := folder(t), "redis://"+g.addr()+"?stream=shop"
	s := openShop(t, dir, sink)
	if err := s.node.Ledger.InsertEndpoint(t.Context(), &webhooks.WebhookEndpoint{ID: "e", URL: h.URL, Secret: "whsec_MDEyMw==", Version: 1}); err != nil {
		t.Fatal(err)
	}
	s.close()
	for _, step := range []string{
		"read, not published", "published, not noted", "noted",
		"hook: read, not queued", "hook: queued", "hook: due, not posted", "hook: posted, not noted", "hook: posted and noted",
	} {
		startDying(t, dir, sink, step).wait()
	}
	// Some of what is published at a time has come to the stream, and no answer
	// comes back.
	half := g.freezeAfter(10_007)
	d := startDying(t, dir, sink, "")
	<-half
	d.kill()
	d.wait()
	g.thaw()
	held := make(chan struct{}, 1)
	h.holdAnswers(held)
	d = startDying(t, dir, sink, "")
	<-held
	d.kill()
	d.wait()
	h.holdAnswers(nil)

	node, err := openNode(t.Context(), dir, sinks.Config{
		Sinks: []string{sink}, Poll: 5 * time.Millisecond, Webhooks: sinks.WebhookConfig{AllowPrivate: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	s = &shop{t: t, node: node}
	t.Cleanup(s.close)
	s.buy("after", 10)
	for _, name := range []string{sinks.Name(sink), webhooks.WebhookSink} {
		await(t, "everything taken by "+name, func() bool { v := s.sinkState(name); return v.Published > 0 && v.Behind == 0 })
	}
	await(t, "everything posted", func() bool {
		n, err := s.node.Ledger.Parts().Webhooks.WaitingDeliveries(t.Context(), "e", time.Time{}, 1)
		return err == nil && n == 0
	})
	s.check("the stream", stream(t, r, "shop"))
	s.check("the webhook", h.all())
}

// check holds what came against the ledger: each step of each claim is there,
// in order, and what is there twice is the same.
func (s *shop) check(what string, messages [][2]string) {
	s.t.Helper()
	first, twice := map[string]string{}, 0
	next := map[string]int{}
	for _, m := range messages {
		if before, again := first[m[0]]; again {
			if twice++; before != m[1] {
				s.t.Errorf("%s: the event %s came again and was another:\n%s\n%s", what, m[0], before, m[1])
			}
			continue
		}
		first[m[0]] = m[1]
		claim, n, _ := strings.Cut(m[0], ".")
		if len(claim) == 16 {
			if n != fmt.Sprint(next[claim]) {
				s.t.Errorf("%s: the event %s came when %d had come", what, m[0], next[claim])
			}
			next[claim]++
		}
	}
	if twice == 0 {
		s.t.Errorf("%s: no event came twice: nobody was killed at the right moment", what)
	}
	for page := (dibs.Page{Limit: dibs.MaxPage}); ; {
		list, err := s.node.Service.Claims.OfCampaign(s.t.Context(), "noon", dibs.ClaimFilter{}, page)
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range list.Items {
			c := &list.Items[i]
			if got, want := next[c.ID], len(c.Events)+1; got != want {
				s.t.Errorf("%s: of the %d events of the claim %s, %d came", what, want, c.ID, got)
			}
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return
		}
	}
}
