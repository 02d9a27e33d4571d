package sinks

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"
)

// reachWithin is how long a sink has to take a connection before its silence is logged.
const reachWithin = 2 * time.Second

// ports are those of addresses that name none.
var ports = map[string]string{"kafka": "9092", "nats": "4222", "amqp": "5672", "amqps": "5671", "redis": "6379", "rediss": "6379"}

// reachable returns nil when one of the servers of a sink's address takes a connection
// within reachWithin. All are tried at a time, so that many that are silent take no longer.
// Clients of brokers connect behind the scenes and try for long: an operator who mistyped
// an address must not wait for them, nor for the first event.
func reachable(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the address cannot be read")
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	// Kafka has further ones as options.
	hosts := append(strings.Split(u.Host, ","), u.Query()["addr"]...)
	answers := make(chan error, len(hosts))
	for _, host := range hosts {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), ports[strings.TrimSuffix(u.Scheme, "+tls")])
		}
		go func() {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "tcp", host)
			if err == nil {
				err = conn.Close()
			}
			answers <- err
		}()
	}
	var errs []error
	for range hosts {
		err := <-answers
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
