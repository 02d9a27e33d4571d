package sinks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	hosts := strings.Split(u.Host, ",")
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

// remind is how often a trouble that goes on is logged again.
const remind = time.Minute

// trouble logs what goes on at once, then rarely, and its end. One goroutine uses it.
type trouble struct {
	log    *slog.Logger
	last   time.Time
	times  int
	lasted time.Time
}

// is logs an error, or counts it until it is time to log again.
func (t *trouble) is(now time.Time, what string, err error, attrs ...any) {
	if t.times++; t.times == 1 {
		t.lasted = now
	}
	if t.times > 1 && now.Sub(t.last) < remind {
		return
	}
	t.last = now
	if t.times > 1 {
		attrs = append(attrs, "tries", t.times, "for", now.Sub(t.lasted).Round(time.Second).String())
	}
	t.log.Warn(what, append(attrs, "err", err)...)
}

// over logs that the trouble is over, when there was one.
func (t *trouble) over(now time.Time, what string, attrs ...any) {
	if t.times == 0 {
		return
	}
	t.log.Info(what, append(attrs, "after", fmt.Sprint(now.Sub(t.lasted).Round(time.Millisecond)))...)
	t.times = 0
}
