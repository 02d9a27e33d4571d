package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := leaks.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// rig is a broker with a consumer, and what was handled.
type rig struct {
	t   *testing.T
	url string
	// send adds a message to the stream: an event's id, subject, and the event.
	send func(id, subject, event string)
	// bury adds a dead letter, and again is how many were brought back and are not handled.
	bury  func(ctx context.Context) error
	again func(ctx context.Context) (int, error)
	// redis is there when it is the broker.
	redis *servers.Redis
	// logger and timeout are the consumer's, when they are set.
	logger  *slog.Logger
	timeout time.Duration
	mu      sync.Mutex
	// handled are the events that were committed, attempts how often each came.
	handled  []string
	attempts map[string]int
	decide   func(ctx context.Context, d *consumer.Delivery) consumer.Decision
}

// eachBroker runs a test on each kind of broker.
func eachBroker(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, newRig(t))
	})
	t.Run("nats", func(t *testing.T) {
		t.Parallel()
		f(t, newNATSRig(t))
	})
}

func newRig(t *testing.T) *rig {
	server, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	r := &rig{t: t, url: server.URL() + "?stream=shop&maxlen=10000", redis: server, attempts: map[string]int{}}
	r.send = func(id, subject, event string) {
		r.do("XADD", "shop", "*", "id", id, "type", "x", "subject", subject, "event", event)
	}
	r.bury = func(ctx context.Context) error {
		_, err := server.Do(ctx, "XADD", "shop:g:dead", "*", "id", "x", "type", "x", "subject", "x", "event", "{", "attempts", "1", "why", "no money")
		return err
	}
	r.again = func(ctx context.Context) (int, error) {
		m, err := server.Do(ctx, "XLEN", "shop:g:again")
		if err != nil {
			return 0, err
		}
		n, err := m.AsInt64()
		return int(n), err
	}
	return r
}

func newNATSRig(t *testing.T) *rig {
	s, err := servers.StartNATS(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	conn, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.>"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, url: s.URL() + "/shop?stream=SHOP&replicas=1", attempts: map[string]int{}}
	r.send = func(id, subject, event string) {
		m := nats.NewMsg("shop.x")
		m.Data = []byte(event)
		m.Header.Set("Nats-Msg-Id", id)
		m.Header.Set("Ce-Subject", subject)
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	r.bury = func(ctx context.Context) error {
		_, err := js.Publish(ctx, "dibs-dead.SHOP.g", []byte("{"))
		return err
	}
	r.again = func(ctx context.Context) (int, error) {
		again, err := js.Stream(ctx, "SHOP-g-again")
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return 0, nil
		case err != nil:
			return 0, err
		}
		return int(again.CachedInfo().State.Msgs), nil
	}
	return r
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
	r.send(id, subject, fmt.Sprintf(`{"specversion":"1.0","id":%q,"type":"x","subject":%q,"time":"2026-12-01T04:00:00Z","data":{}}`, id, subject))
}

func (r *rig) handle(ctx context.Context, d *consumer.Delivery) consumer.Decision {
	r.mu.Lock()
	r.attempts[d.Event.ID]++
	decide := r.decide
	r.mu.Unlock()
	decision := consumer.Commit
	if decide != nil {
		decision = decide(ctx, d)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if decision == consumer.Commit {
		r.handled = append(r.handled, d.Event.ID)
	}
	return decision
}

// start runs a consumer until stop, or until the test ends.
func (r *rig) start(maxAttempts int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := consumer.Run(ctx, consumer.Config{URL: r.url, Group: "g", FromStart: true, Handle: r.handle, MaxAttempts: maxAttempts, Logger: r.logger, Timeout: r.timeout})
		if !errors.Is(err, context.Canceled) {
			r.t.Errorf("the consumer ended with %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	r.t.Cleanup(stop)
	return stop
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
	letters, err := consumer.DeadLetters(r.t.Context(), consumer.Dead{URL: r.url, Group: "g"}, "", 10)
	if err != nil {
		r.t.Fatal(err)
	}
	return letters
}

// TestRun: what cannot be handled comes again, then becomes a dead letter, which
// can be brought back; the rest is handled once, in order for each subject.
func TestRun(t *testing.T) { eachBroker(t, testRun) }

func testRun(t *testing.T, r *rig) {
	var good atomic.Bool
	r.decide = func(_ context.Context, d *consumer.Delivery) consumer.Decision {
		switch {
		case strings.HasPrefix(d.Event.ID, "bad") && !good.Load():
			return consumer.ReconsumeLater(0, errors.New("no\nmoney"))
		case d.Event.ID == "late.0" && d.Attempt < 3:
			return consumer.ReconsumeLater(time.Millisecond, nil)
		case d.Event.ID == "late.1" && d.Attempt < 2:
			panic("not yet")
		}
		return consumer.Commit
	}
	for i := range 5 {
		for _, subject := range []string{"a", "b", "c"} {
			r.publish(fmt.Sprintf("%s.%d", subject, i))
		}
	}
	for _, id := range []string{"bad.0", "bad.1", "bad.2", "late.0"} {
		r.publish(id)
	}
	r.send("none", "none", "{")
	r.start(3)
	r.await("all that is good", func() bool { return len(r.handled) == 16 && r.attempts["bad.0"] == 3 && r.attempts["bad.2"] == 3 })
	next := map[string]int{}
	for _, id := range r.handled {
		subject, n, _ := strings.Cut(id, ".")
		if n != fmt.Sprint(next[subject]) {
			t.Errorf("%s came when %d were wanted: %v", id, next[subject], r.handled)
		}
		next[subject]++
	}
	r.await("the dead letters", func() bool { return len(r.dead()) == 4 })
	entries := map[string]string{}
	for _, l := range r.dead() {
		entries[l.EventID] = l.Entry
		if l.EventID != "" && (l.Attempts != 3 || strings.Join(strings.Fields(l.Why), " ") != "no money" || l.Subject != "bad") ||
			l.EventID == "" && !strings.HasPrefix(l.Why, "it is no event") {
			t.Errorf("a dead letter is %+v", l)
		}
	}
	where := consumer.Dead{URL: r.url, Group: "g"}
	if some, err := consumer.DeadLetters(t.Context(), where, r.dead()[1].Entry, 1); err != nil || len(some) != 1 || some[0].Entry != r.dead()[2].Entry {
		t.Errorf("one after the second: %+v, %v", some, err)
	}
	good.Store(true)
	if n, err := consumer.Replay(t.Context(), where, entries["bad.1"]); err != nil || n != 1 {
		t.Fatalf("%d letters came back: %v", n, err)
	}
	r.await("the letter that came back", func() bool { return len(r.handled) == 17 && r.handled[16] == "bad.1" })
	if n, err := consumer.Replay(t.Context(), where, entries["bad.1"]); err != nil || n != 0 {
		t.Errorf("%d letters came back twice: %v", n, err)
	}
	if n, err := consumer.Replay(t.Context(), where, ""); err != nil || n != 3 {
		t.Fatalf("%d letters came back: %v", n, err)
	}
	r.await("all that came back", func() bool { return len(r.handled) == 19 })
	r.await("the one that is no event, dead again", func() bool { l := r.dead(); return len(l) == 1 && l[0].EventID == "" })
	if r.redis != nil {
		r.await("nothing left of what came back", func() bool {
			left, err := r.redis.Do(t.Context(), "XLEN", "shop:g:again")
			if err != nil {
				t.Fatal(err)
			}
			n, err := left.AsInt64()
			return err == nil && n == 0
		})
	}
}

// TestStopIsNoAttempt: a consumer that stops buries nothing that it has not
// tried, and what it could not finish is not an attempt.
func TestStopIsNoAttempt(t *testing.T) { eachBroker(t, testStop) }

func testStop(t *testing.T, r *rig) {
	begun := make(chan struct{}, 100)
	r.decide = func(ctx context.Context, _ *consumer.Delivery) consumer.Decision {
		begun <- struct{}{}
		<-ctx.Done()
		return consumer.ReconsumeLater(0, ctx.Err())
	}
	for i := range 20 {
		r.publish(fmt.Sprintf("%c.%d", 'a'+i%10, i/10))
	}
	stop := r.start(1)
	<-begun
	stop()
	if letters := r.dead(); len(letters) > 0 {
		t.Fatalf("%d events were buried, the first is %+v", len(letters), letters[0])
	}
	r.decide = func(_ context.Context, d *consumer.Delivery) consumer.Decision {
		if r.redis != nil && d.Attempt != 1 {
			t.Errorf("the first attempt at %s counts as %d", d.Event.ID, d.Attempt)
		}
		return consumer.Commit
	}
	r.start(1)
	r.await("everything", func() bool { return len(r.handled) == 20 })
	if letters := r.dead(); len(letters) > 0 {
		t.Errorf("the dead letters are %+v", letters)
	}
}

// TestConsumerDies: what a consumer had that died comes to another one.
func TestConsumerDies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.do("XGROUP", "CREATE", "shop", "g", "0", "MKSTREAM")
	r.publish("a.0")
	r.do("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "shop", ">")
	m, err := r.redis.Do(t.Context(), "XPENDING", "shop", "g", "-", "+", "1")
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
	r.do("XCLAIM", "shop", "g", "dead", "0", entry, "IDLE", "3600000", "JUSTID")
	r.start(3)
	r.await("the event of the dead one", func() bool { return len(r.handled) == 1 && r.handled[0] == "a.0" })
	r.publish("b.0")
	r.await("the next", func() bool { return len(r.handled) == 2 })
}

// TestAddresses: what cannot be used is said, without its password.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, group, want string }{
		{"redis://h", "", "the group is required"},
		{"http://h", "g", "must be like"},
		{"redis://", "g", "must be like"},
		{"redis://u:secret-pw%zz@h", "g", "must be like"},
		{"nats://127.0.0.1:1", "a.b", "a group's name"},
		{"redis://u:secret-pw@127.0.0.1:1", "g", "connection refused"},
		{"nats://secret-pw@127.0.0.1:1", "g", "no servers available"},
	} {
		_, err := consumer.DeadLetters(t.Context(), consumer.Dead{URL: c.url, Group: c.group}, "", 1)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-pw") {
			t.Errorf("%s: %v", c.url, err)
		}
	}
}

// TestReplayEnds: letters that are buried again while all are brought back stay dead: each comes back once.
func TestReplayEnds(t *testing.T) { eachBroker(t, testReplayEnds) }

func testReplayEnds(t *testing.T, r *rig) {
	const letters = 300
	// The broker has what a group needs once there was a dead letter.
	r.decide = func(context.Context, *consumer.Delivery) consumer.Decision {
		return consumer.ReconsumeLater(0, errors.New("no money"))
	}
	r.publish("bad.0")
	stop := r.start(1)
	r.await("the first dead letter", func() bool { return len(r.dead()) == 1 })
	stop()
	for range letters - 1 {
		if err := r.bury(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var burying sync.WaitGroup
	defer burying.Wait()
	defer cancel()
	burying.Go(func() {
		for buried := 0; buried < 10*letters; {
			back, err := r.again(ctx)
			for ; err == nil && buried < back; buried++ {
				err = r.bury(ctx)
			}
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
		}
	})
	if n, err := consumer.Replay(t.Context(), consumer.Dead{URL: r.url, Group: "g"}, ""); err != nil || n != letters {
		t.Errorf("%d of %d letters came back: %v", n, letters, err)
	}
}
