package sinks_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/internal/servers"
)

// startNATS starts a server with JetStream that runs until the test's end.
func startNATS(t testing.TB) *servers.NATS {
	t.Helper()
	n, err := servers.StartNATS(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	return n
}

// TestNATS: JetStream gets every event once, even when it was published again
// after the server had been away.
func TestNATS(t *testing.T) {
	t.Parallel()
	srv := startNATS(t)
	sink := srv.URL() + "/shop?stream=SHOP"
	s := openShop(t, folder(t), sink)
	await(t, "the sink", func() bool { return s.sinkState(sinks.Name(sink)).Owner != "" })
	ids := s.buy("a", 20)
	await(t, "the first events", func() bool { v := s.sinkState(sinks.Name(sink)); return v.Published >= 50 && v.Behind == 0 })
	srv.Kill()
	ids = append(ids, s.buy("b", 10)...)
	await(t, "a failure that is told", func() bool { return s.sinkState(sinks.Name(sink)).Failures > 0 })
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "all events", func() bool { v := s.sinkState(sinks.Name(sink)); return v.OK && v.Behind == 0 && v.Published >= 75 })

	conn, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := js.OrderedConsumer(t.Context(), "SHOP", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"shop.claim.>"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newTally(t, ids)
	for done := false; !done; {
		m, err := c.Next(jetstream.FetchMaxWait(patience))
		if err != nil {
			t.Fatalf("%d events are missing: %v", w.left, err)
		}
		id := m.Headers().Get("Nats-Msg-Id")
		asCloudEvent(t, m.Headers().Get("Content-Type"), m.Data())
		done = w.take(id, string(m.Data()))
		if want := "shop." + w.events[id].Type[len("dev.dibs."):]; m.Subject() != want {
			t.Errorf("the subject of %s is %s", id, m.Subject())
		}
	}
	if w.twice > 0 {
		t.Errorf("%d events are there twice", w.twice)
	}
	// The same message once more: the server knows its id.
	p, err := sinks.Open(sink)
	if err != nil {
		t.Fatal(err)
	}
	again := sinks.Message{ID: ids[0] + ".0", Type: "dev.dibs.claim.granted", Subject: ids[0], Body: []byte("{}")}
	if err := p.Publish(t.Context(), []sinks.Message{again}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Next(jetstream.FetchMaxWait(200 * time.Millisecond)); err == nil && m.Headers().Get("Nats-Msg-Id") == again.ID {
		t.Error("a message with an id that was there is there again")
	}
}

// TestNATSWithoutStream: where no stream takes the subjects, nothing is lost:
// it is said what to do.
func TestNATSWithoutStream(t *testing.T) {
	t.Parallel()
	srv := startNATS(t)
	p, err := sinks.Open(srv.URL() + "/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Publish(ctx, []sinks.Message{{ID: "x.0", Type: "dev.dibs.claim.granted", Subject: "x", Body: []byte("{}")}}); err == nil {
		t.Error("a message that nobody keeps was acknowledged")
	}
}

// TestCheck names what is wrong with an address, and no password.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"redis://u:p@h:6379/2?stream=s&maxlen=10", "rediss://h", "nats://h:4222/shop?stream=S&replicas=3", "tls://h",
		"amqp://u:p@h/v?exchange=e&queue=q&declare=false", "amqps://h", "kafka://h:9092/t?addr=i:9092&addr=j:9092&tls=true", "kafka://u:p@h/t?sasl=scram-sha-512",
	} {
		if err := sinks.Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"h:9092": "begin with", "http://h": "must begin with one of amqp://", "redis://:6379": "names no host", "redis://u:secret-pw%zz@h": "cannot be read",
		"redis://h/x": "number of a database", "redis://h?maxlen=-1": "whole number", "redis://h?strem=x": `no option "strem"`,
		"redis://h?stream=a&stream=b": "2 times", "nats://h/a*": "without *", "nats://h?stream=a.b": "without dots",
		"amqp://h?declare=perhaps": "true or false", "kafka://h/a%20b": "name of a topic", "kafka://h/t?sasl=plain": "needs a user",
		"kafka://u:secret-pw@h/t?sasl=gssapi": "sasl must be",
	} {
		err := sinks.Check(bad)
		if err == nil {
			t.Errorf("%s was taken", bad)
			continue
		}
		if text := err.Error(); !contains(text, want) && want != "begin with" || contains(text, "secret-pw") {
			t.Errorf("%s: %s", bad, text)
		}
	}
	if got := sinks.Name("redis://u:secret-pw@h:6379/2?stream=s&maxlen=10"); got != "redis://h:6379/2?stream=s" {
		t.Errorf("the name is %s", got)
	}
}

func TestStalledNATS(t *testing.T) {
	t.Parallel()
	srv := startNATS(t)
	stalls(t, srv.URL()+"/shop?stream=STALLED")
}
