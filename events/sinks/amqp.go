package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var amqpForm = &form{
	example: "amqp://USER:PASSWORD@HOST:5672/VHOST?exchange=dibs&queue=dibs",
	options: []string{"exchange", "queue", "declare"},
	check: func(u *url.URL) error {
		_, err := yes(u, "declare")
		return err
	},
	open: openAMQP,
}

// amqpSink publishes to an exchange of RabbitMQ.
//
// One goroutine publishes and closes. mu guards wire alone, which the end of a
// context closes from another goroutine.
type amqpSink struct {
	at              place
	exchange, queue string
	// passive says that the exchange has to be there.
	passive bool
	conn    *amqp.Connection
	channel *amqp.Channel

	mu sync.Mutex
	// wire is what the connection runs over.
	wire net.Conn
}

func openAMQP(at place) (Publisher, error) {
	a := &amqpSink{at: at, exchange: cmp.Or(at.Query().Get("exchange"), "dibs"), queue: at.Query().Get("queue")}
	if at.Query().Has("declare") {
		declare, err := yes(at.URL, "declare")
		if err != nil {
			return nil, err
		}
		a.passive = !declare
	}
	return a, nil
}

// within cuts the wire when ctx ends before release is called. The library
// waits without limit for a broker that does not read, or does not answer.
func (a *amqpSink) within(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.wire != nil {
			// It is given up: how it ends says nothing.
			_ = a.wire.Close()
		}
	})
}

// connect opens connection and channel, and declares exchange and queue.
// Exchange and queue are durable. An exchange that is there with other settings is an
// error, and no repeat helps: the address must say declare=false.
func (a *amqpSink) connect(ctx context.Context) error {
	plain := a.at.now()
	plain.RawQuery = ""
	conn, err := amqp.DialConfig(plain.String(), amqp.Config{
		Heartbeat: 10 * time.Second, Properties: amqp.Table{"connection_name": "dibs"},
		Dial: func(network, addr string) (net.Conn, error) {
			wire, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			a.mu.Lock()
			a.wire = wire
			a.mu.Unlock()
			// The deadline covers the handshake; the library lifts it then.
			return wire, errors.Join(ctx.Err(), wire.SetDeadline(time.Now().Add(5*time.Second)))
		},
	})
	if err != nil {
		return err
	}
	a.conn = conn
	if a.channel, err = conn.Channel(); err != nil {
		return err
	}
	declare := a.channel.ExchangeDeclare
	if a.passive {
		declare = a.channel.ExchangeDeclarePassive
	}
	if err := declare(a.exchange, "topic", true, false, false, false, nil); err != nil {
		return fmt.Errorf("the exchange %q: %w", a.exchange, err)
	}
	if a.queue != "" {
		if _, err := a.channel.QueueDeclare(a.queue, true, false, false, false, nil); err != nil {
			return fmt.Errorf("the queue %q: %w", a.queue, err)
		}
		if err := a.channel.QueueBind(a.queue, "#", a.exchange, false, nil); err != nil {
			return fmt.Errorf("the queue %q: %w", a.queue, err)
		}
	}
	return a.channel.Confirm(false)
}

// Publish implements Publisher: the broker confirms each message. With a queue
// of its own, that means that the message is in it.
func (a *amqpSink) Publish(ctx context.Context, messages []Message) error {
	release := a.within(ctx)
	defer release()
	if a.channel == nil || a.channel.IsClosed() {
		// An old connection may be half alive.
		_ = a.Close()
		if err := a.connect(ctx); err != nil {
			return errors.Join(tidied(err, a.at.now()), a.Close())
		}
	}
	// All messages are sent before the first confirmation is waited for: one round
	// trip serves the batch.
	confirms := make([]*amqp.DeferredConfirmation, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		c, err := a.channel.PublishWithDeferredConfirmWithContext(ctx, a.exchange, m.topic(), false, false, amqp.Publishing{
			ContentType: contentType, DeliveryMode: amqp.Persistent, MessageId: m.ID, Type: m.Type, Body: m.Body,
			Headers: amqp.Table{"subject": m.Subject}, Timestamp: time.Time{},
		})
		if err != nil {
			return errors.Join(tidied(err, a.at.now()), a.Close())
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		// After an error the connection is given up: late messages of it must not
		// follow those of the next attempt.
		ok, err := c.WaitContext(ctx)
		if err == nil && !ok {
			err = errors.New("the broker did not confirm a message")
		}
		if err != nil {
			return errors.Join(tidied(err, a.at.now()), a.Close())
		}
	}
	return nil
}

// Close implements Publisher.
func (a *amqpSink) Close() error {
	if a.conn != nil {
		// It may be broken: then there is nothing to say good-bye to. The deadline
		// holds for what is being written too.
		_ = a.conn.CloseDeadline(time.Now().Add(time.Second))
		a.conn, a.channel = nil, nil
	}
	return nil
}
