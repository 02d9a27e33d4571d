package events_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestRabbitMQ: a queue gets every event, confirmed and in order; when the broker is
// killed, that is told.
func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	r, err := servers.StartRabbitMQ(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Kill()
	sink := r.URL() + "/?exchange=shop&queue=all"
	s := openShop(t, folder(t), sink)
	await(t, "the sink", func() bool { return s.sinkState(events.Name(sink)).Owner != "" })
	ids := s.buy("a", 30)

	var conn *amqp.Connection
	await(t, "the events' queue", func() bool { v := s.sinkState(events.Name(sink)); return v.Published >= 75 })
	if conn, err = amqp.Dial(r.URL()); err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	messages, err := ch.Consume("all", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newTally(t, ids)
	over := time.After(patience)
	for done := false; !done; {
		select {
		case m := <-messages:
			done = w.take(m.MessageId, string(m.Body))
			if e := w.events[m.MessageId]; e.ID != "" && (m.RoutingKey != e.Type[len("dev.dibs."):] || m.DeliveryMode != amqp.Persistent) {
				t.Errorf("the message %s has the key %s, mode %d", m.MessageId, m.RoutingKey, m.DeliveryMode)
			}
		case <-over:
			t.Fatalf("%d events are missing", w.left)
		}
	}
	if w.twice > 0 {
		t.Errorf("%d events came twice", w.twice)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	r.Kill()
	s.buy("b", 2)
	await(t, "a failure that is told", func() bool { return s.sinkState(events.Name(sink)).Failures > 0 })
	s.close()
}
