package sinks

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var kafkaForm = &form{
	example: "kafka://USER:PASSWORD@HOST:9092/TOPIC?tls=true&sasl=scram-sha-256&addr=HOST:9092",
	options: []string{"addr", "tls", "sasl", "create"},
	check: func(u *url.URL) error {
		_, err := kafkaOptions(u)
		return err
	},
	open: openKafka,
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// kafkaOptions turns an address into the client's options.
func kafkaOptions(u *url.URL) ([]kgo.Opt, error) {
	topic := cmp.Or(strings.Trim(u.Path, "/"), "dibs")
	if !topicName.MatchString(topic) {
		return nil, errors.New("the path must be the name of a topic: letters, digits, dots, _ and -")
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(append([]string{u.Host}, u.Query()["addr"]...)...), kgo.DefaultProduceTopic(topic), kgo.ClientID("dibs"),
		// All replicas in sync have it, and the broker drops what the client sends
		// twice.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordDeliveryTimeout(publishPatience), kgo.ProduceRequestTimeout(publishPatience), kgo.DialTimeout(5 * time.Second),
		// A batch has about publishMost records; with less room, producing would wait
		// for itself.
		kgo.MaxBufferedRecords(2 * publishMost),
	}
	create, err := yes(u, "create")
	if err != nil {
		return nil, err
	}
	if create {
		opts = append(opts, kgo.AllowAutoTopicCreation())
	}
	encrypted, err := yes(u, "tls")
	if err != nil {
		return nil, err
	}
	if encrypted {
		opts = append(opts, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	} else {
		opts = append(opts, kgo.Dialer((&net.Dialer{Timeout: 5 * time.Second}).DialContext))
	}
	mechanism, err := kafkaSASL(u)
	if err != nil {
		return nil, err
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}

func kafkaSASL(u *url.URL) (sasl.Mechanism, error) {
	password, _ := u.User.Password()
	user, kind := u.User.Username(), u.Query().Get("sasl")
	if user == "" && kind == "" {
		return nil, nil
	}
	if user == "" {
		return nil, errors.New("sasl needs a user and a password in the address")
	}
	switch kind {
	case "", "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("sasl must be plain, scram-sha-256 or scram-sha-512, not %q", kind)
}

// kafkaSink produces to a topic. Records of one key go to one partition, in
// order.
// One goroutine uses it. client is nil before the first batch, and after an error.
type kafkaSink struct {
	at     place
	client *kgo.Client
}

func openKafka(at place) (Publisher, error) { return &kafkaSink{at: at}, nil }

// Publish implements Publisher.
func (k *kafkaSink) Publish(ctx context.Context, messages []Message) error {
	if k.client == nil {
		opts, err := kafkaOptions(k.at.now())
		if err != nil {
			return tidied(err, k.at.now())
		}
		c, err := kgo.NewClient(opts...)
		if err != nil {
			return tidied(err, k.at.now())
		}
		k.client = c
	}
	records := make([]*kgo.Record, len(messages))
	for i := range messages {
		m := &messages[i]
		records[i] = &kgo.Record{Key: []byte(m.Subject), Value: m.Body, Headers: []kgo.RecordHeader{
			{Key: "content-type", Value: []byte(contentType)}, {Key: "id", Value: []byte(m.ID)}, {Key: "type", Value: []byte(m.Type)},
		}}
	}
	// Messages on their way to a broker that does not answer cannot be called back:
	// the library waits for it until the client is closed.
	stop := context.AfterFunc(ctx, k.client.Close)
	err := k.client.ProduceSync(ctx, records...).FirstErr()
	if !stop() || err != nil {
		// Messages that are still buffered must not follow the next ones.
		err = errors.Join(tidied(err, k.at.now()), k.Close())
	}
	return err
}

// Close implements Publisher.
func (k *kafkaSink) Close() error {
	if k.client != nil {
		k.client.Close()
		k.client = nil
	}
	return nil
}
