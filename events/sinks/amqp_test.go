package sinks_test

import (
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestRabbitMQ: a queue gets every event, confirmed and in order. A broker that
// reads nothing is not waited for. One that is killed and started again while
// events come misses none of them.
func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	r, err := servers.StartRabbitMQ(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Kill()
	stalls(t, r.URL()+"/?exchange=other")
	sink := r.URL() + "/?exchange=shop&queue=all"
	s := openShop(t, folder(t), sink)
	await(t, "the sink", func() bool { return s.sinkState(sinks.Name(sink)).Owner != "" })
	ids := s.buy("a", 30)
	await(t, "the events' queue", func() bool { v := s.sinkState(sinks.Name(sink)); return v.Published >= 75 && v.Behind == 0 })
	if twice := consume(t, r, ids, false); twice > 0 {
		t.Errorf("%d events came twice, and nothing had failed", twice)
	}

	bought := make(chan []string, 1)
	go func() {
		// It goes on buying until the broker is there again.
		more, err := buy(t.Context(), s.node, "b", 40)
		if err != nil {
			t.Error(err)
		}
		bought <- more
	}()
	await(t, "some of these events", func() bool { return s.sinkState(sinks.Name(sink)).Published > 80 })
	r.Kill()
	last := s.buy("c", 2)
	await(t, "a failure that is told", func() bool { return s.sinkState(sinks.Name(sink)).Failures > 0 })
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	more := <-bought
	await(t, "what waited", func() bool { v := s.sinkState(sinks.Name(sink)); return v.OK && v.Behind == 0 })
	t.Logf("%d events came twice", consume(t, r, slices.Concat(ids, more, last), true))
	s.close()
}

// consume reads the queue until every event of the claims has come, and returns
// how many came twice. What it reads stays in the queue, unless it is the last
// to read.
func consume(t *testing.T, r *servers.RabbitMQ, ids []string, last bool) int {
	t.Helper()
	conn, err := amqp.Dial(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	messages, err := ch.Consume("all", "", last, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newTally(t, ids)
	over := time.After(patience)
	for done := false; !done; {
		select {
		case m := <-messages:
			asCloudEvent(t, m.ContentType, m.Body)
			done = w.take(m.MessageId, string(m.Body))
			if e := w.events[m.MessageId]; e.ID != "" && (m.RoutingKey != e.Type[len("dev.dibs."):] || m.DeliveryMode != amqp.Persistent) {
				t.Errorf("the message %s has the key %s, mode %d", m.MessageId, m.RoutingKey, m.DeliveryMode)
			}
		case <-over:
			t.Fatalf("%d events are missing", w.left)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	return w.twice
}
