package events

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
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
type amqpSink struct {
	u               *url.URL
	address         string
	exchange, queue string
	// passive says that the exchange has to be there.
	passive bool
	conn    *amqp.Connection
	channel *amqp.Channel
}

func openAMQP(u *url.URL) (Publisher, error) {
	a := &amqpSink{u: u, exchange: u.Query().Get("exchange"), queue: u.Query().Get("queue")}
	if a.exchange == "" {
		a.exchange = "dibs"
	}
	if u.Query().Has("declare") {
		declare, err := yes(u, "declare")
		if err != nil {
			return nil, err
		}
		a.passive = !declare
	}
	plain := *u
	plain.RawQuery = ""
	a.address = plain.String()
	return a, nil
}

// connect opens connection and channel, and declares exchange and queue.
func (a *amqpSink) connect() error {
	conn, err := amqp.DialConfig(a.address, amqp.Config{
		Heartbeat: 10 * time.Second, Properties: amqp.Table{"connection_name": "dibs"},
		Dial: func(network, addr string) (net.Conn, error) {
			// The deadline covers the handshake; the library lifts it then.
			return amqp.DefaultDial(5*time.Second)(network, addr)
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
	if a.channel == nil || a.channel.IsClosed() {
		// An old connection may be half alive.
		_ = a.Close()
		if err := a.connect(); err != nil {
			return errors.Join(tidied(err, a.u), a.Close())
		}
	}
	confirms := make([]*amqp.DeferredConfirmation, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		c, err := a.channel.PublishWithDeferredConfirmWithContext(ctx, a.exchange, m.topic(), false, false, amqp.Publishing{
			ContentType: contentType, DeliveryMode: amqp.Persistent, MessageId: m.ID, Type: m.Type, Body: m.Body,
			Headers: amqp.Table{"subject": m.Subject}, Timestamp: time.Time{},
		})
		if err != nil {
			return errors.Join(tidied(err, a.u), a.Close())
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		ok, err := c.WaitContext(ctx)
		if err == nil && !ok {
			err = errors.New("the broker did not confirm a message")
		}
		if err != nil {
			return errors.Join(tidied(err, a.u), a.Close())
		}
	}
	return nil
}

// Close implements Publisher.
func (a *amqpSink) Close() error {
	if a.conn != nil {
		// It may be broken: then there is nothing to say good-bye to.
		_ = a.conn.CloseDeadline(time.Now().Add(time.Second))
		a.conn, a.channel = nil, nil
	}
	return nil
}
