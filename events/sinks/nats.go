package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsDedup is how long a stream that is made here remembers the ids of
// messages, so that what is published again is there once.
// It is longer than a node's lease and the pause after a failure together.
const natsDedup = 10 * time.Minute

var natsForm = &form{
	example: "nats://USER:PASSWORD@HOST:4222/dibs?stream=DIBS",
	options: []string{"stream", "replicas"},
	check: func(u *url.URL) error {
		if strings.ContainsAny(strings.Trim(u.Path, "/"), "/*> \t") {
			return errors.New("the path is what subjects begin with, such as /dibs, without *, > and spaces")
		}
		if _, err := whole(u, "replicas"); err != nil {
			return err
		}
		if strings.ContainsAny(u.Query().Get("stream"), ".*> \t/\\") {
			return errors.New("stream must be a name without dots, spaces and wildcards")
		}
		return nil
	},
	open: openNATS,
}

// natsSink publishes to JetStream.
// One goroutine uses it. conn is nil before the first batch, and after an error.
type natsSink struct {
	at place
	// prefix begins the subjects; stream is made when it is not there, unless it
	// is empty.
	prefix, stream string
	replicas       int
	conn           *nats.Conn
	js             jetstream.JetStream
}

func openNATS(at place) (Publisher, error) {
	n := &natsSink{at: at, prefix: cmp.Or(strings.Trim(at.Path, "/"), "dibs"), stream: at.Query().Get("stream")}
	replicas, err := whole(at.URL, "replicas")
	n.replicas = max(int(replicas), 1)
	return n, err
}

// connect opens the connection, and makes the stream when it is not there.
func (n *natsSink) connect(ctx context.Context) error {
	// The library reads no path and no options.
	plain := n.at.now()
	plain.Path, plain.RawQuery = "", ""
	conn, err := nats.Connect(plain.String(), nats.Name("dibs"), nats.Timeout(5*time.Second), nats.MaxReconnects(-1),
		// A server that does not read is not waited for.
		nats.FlusherTimeout(5*time.Second))
	if err != nil {
		return err
	}
	// Retrying in the library could put messages behind later ones.
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(publishMost), jetstream.WithPublishAsyncTimeout(publishPatience))
	if err == nil && n.stream != "" {
		_, err = js.Stream(ctx, n.stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			_, err = js.CreateStream(ctx, jetstream.StreamConfig{
				Name: n.stream, Subjects: []string{n.prefix + ".>"}, Storage: jetstream.FileStorage, Replicas: n.replicas, Duplicates: natsDedup,
			})
		}
	}
	if err != nil {
		conn.Close()
		return err
	}
	n.conn, n.js = conn, js
	return nil
}

// Publish implements Publisher. The server drops messages whose id it
// remembers.
func (n *natsSink) Publish(ctx context.Context, messages []Message) error {
	if n.conn == nil {
		if err := n.connect(ctx); err != nil {
			return tidied(err, n.at.now())
		}
	}
	acks := make([]jetstream.PubAckFuture, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		msg := nats.NewMsg(n.prefix + "." + m.topic())
		msg.Data = m.Body
		msg.Header.Set("Content-Type", contentType)
		msg.Header.Set("Ce-Subject", m.Subject)
		ack, err := n.js.PublishMsgAsync(msg, jetstream.WithMsgID(m.ID), jetstream.WithRetryAttempts(0))
		if err != nil {
			return n.failed(err)
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return n.failed(err)
		case <-ctx.Done():
			return n.failed(ctx.Err())
		}
	}
	return nil
}

// failed gives the connection up: what is still on its way must not arrive
// after what comes next.
func (n *natsSink) failed(err error) error {
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		err = fmt.Errorf("no stream takes %s.>: name one with ?stream=, which makes it: %w", n.prefix, err)
	}
	return errors.Join(tidied(err, n.at.now()), n.Close())
}

// Close implements Publisher.
func (n *natsSink) Close() error {
	if n.conn != nil {
		n.conn.Close()
		n.conn, n.js = nil, nil
	}
	return nil
}
