package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/internal/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// rig is a Redis with a consumer, and what was handled.
type rig struct {
	t     *testing.T
	redis *servers.Redis
	mu    sync.Mutex
	// handled are the events that were committed, attempts how often each came.
	handled  []string
	attempts map[string]int
	decide   func(d *consumer.Delivery) consumer.Decision
}

func newRig(t *testing.T) *rig {
	r, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return &rig{t: t, redis: r, attempts: map[string]int{}}
}

func (r *rig) do(args ...string) string {
	r.t.Helper()
	m, err := r.redis.Do(r.t.Context(), args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return m.String()
}

// publish adds an event to the stream.
func (r *rig) publish(id string) {
	r.t.Helper()
	subject, _, _ := strings.Cut(id, ".")
	r.do("XADD", consumer.DefaultStream, "*", "id", id, "type", "x", "subject", subject,
		"event", fmt.Sprintf(`{"specversion":"1.0","id":%q,"type":"x","subject":%q,"time":"2026-12-01T04:00:00Z","data":{}}`, id, subject))
}

func (r *rig) handle(_ context.Context, d *consumer.Delivery) consumer.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[d.Event.ID]++
	decision := consumer.Commit
	if r.decide != nil {
		decision = r.decide(d)
	}
	if decision == consumer.Commit {
		r.handled = append(r.handled, d.Event.ID)
	}
	return decision
}

// start runs a consumer until the test ends.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := consumer.Run(ctx, consumer.Config{URL: r.redis.URL(), Group: "g", FromStart: true, Handle: r.handle, MaxAttempts: 3})
		if !errors.Is(err, context.Canceled) {
			r.t.Errorf("the consumer ended with %v", err)
		}
	})
	r.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// await tries until it is true.
func (r *rig) await(what string, try func() bool) {
	r.t.Helper()
	over := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		r.mu.Lock()
		ok := try()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-over:
			r.t.Fatalf("%s does not happen; handled were %v", what, r.handled)
		}
	}
}

func (r *rig) dead() []consumer.DeadLetter {
	r.t.Helper()
	letters, err := consumer.DeadLetters(r.t.Context(), consumer.Dead{URL: r.redis.URL(), Group: "g"}, "", 10)
	if err != nil {
		r.t.Fatal(err)
	}
	return letters
}

// TestRun: what cannot be handled comes again, then becomes a dead letter, which
// can be brought back; the rest is handled once, in order for each subject.
func TestRun(t *testing.T) {
	r := newRig(t)
	bad := true
	r.decide = func(d *consumer.Delivery) consumer.Decision {
		switch {
		case d.Event.ID == "bad.0" && bad:
			return consumer.ReconsumeLater(0, errors.New("no money"))
		case d.Event.ID == "late.0" && d.Attempt < 3:
			return consumer.ReconsumeLater(time.Millisecond, nil)
		}
		return consumer.Commit
	}
	for i := range 5 {
		for _, subject := range []string{"a", "b", "c"} {
			r.publish(fmt.Sprintf("%s.%d", subject, i))
		}
	}
	r.publish("bad.0")
	r.publish("late.0")
	r.do("XADD", consumer.DefaultStream, "*", "id", "none", "event", "{")
	r.start()
	r.await("all that is good", func() bool { return len(r.handled) == 16 && r.attempts["bad.0"] == 3 })
	next := map[string]int{}
	for _, id := range r.handled {
		subject, n, _ := strings.Cut(id, ".")
		if n != fmt.Sprint(next[subject]) {
			t.Errorf("%s came when %d were wanted: %v", id, next[subject], r.handled)
		}
		next[subject]++
	}
	r.await("the dead letters", func() bool { return len(r.dead()) == 2 })
	for _, l := range r.dead() {
		if l.EventID == "bad.0" && (l.Attempts != 3 || l.Why != "no money") || l.EventID == "none" && !strings.HasPrefix(l.Why, "it is no event") {
			t.Errorf("a dead letter is %+v", l)
		}
	}
	r.mu.Lock()
	bad = false
	r.mu.Unlock()
	for _, l := range r.dead() {
		if l.EventID != "bad.0" {
			continue
		}
		if n, err := consumer.Replay(t.Context(), consumer.Dead{URL: r.redis.URL(), Group: "g"}, l.Entry); err != nil || n != 1 {
			t.Fatalf("%d letters came back: %v", n, err)
		}
	}
	r.await("the letter that came back", func() bool { return len(r.handled) == 17 && r.handled[16] == "bad.0" })
	if letters := r.dead(); len(letters) != 1 || letters[0].EventID != "none" {
		t.Errorf("the dead letters that are left are %+v", letters)
	}
}

// TestConsumerDies: what a consumer had that died comes to another one, and a
// server that was gone for a while loses nothing.
func TestConsumerDies(t *testing.T) {
	r := newRig(t)
	r.do("XGROUP", "CREATE", consumer.DefaultStream, "g", "0", "MKSTREAM")
	r.publish("a.0")
	r.do("XREADGROUP", "GROUP", "g", "dead", "STREAMS", consumer.DefaultStream, ">")
	m, err := r.redis.Do(t.Context(), "XPENDING", consumer.DefaultStream, "g", "-", "+", "1")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := m.ToArray()
	if err != nil {
		t.Fatal(err)
	}
	row, err := rows[0].ToArray()
	if err != nil {
		t.Fatal(err)
	}
	entry, err := row[0].ToString()
	if err != nil {
		t.Fatal(err)
	}
	// An hour goes by.
	r.do("XCLAIM", consumer.DefaultStream, "g", "dead", "0", entry, "IDLE", "3600000", "JUSTID")
	r.start()
	r.await("the event of the dead one", func() bool { return len(r.handled) == 1 && r.handled[0] == "a.0" })
	r.publish("b.0")
	r.await("the next", func() bool { return len(r.handled) == 2 })
}
