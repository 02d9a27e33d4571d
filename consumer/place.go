package consumer

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
)

// kind is a kind of broker.
type kind struct {
	// stream is the name of a stream that is not said.
	stream string
	run    func(ctx context.Context, cfg *Config, at *place) (worked bool, err error)
	// dead lists dead letters, replay brings them back.
	dead   func(ctx context.Context, at *place, after string, max int) ([]DeadLetter, error)
	replay func(ctx context.Context, at *place, entry string) (int, error)
}

// kinds are the brokers by the schemes of their addresses.
var kinds = map[string]*kind{"redis": redisKind, "rediss": redisKind, "nats": natsKind, "tls": natsKind}

// place is where a group's events are.
type place struct {
	kind          *kind
	url           *url.URL
	stream, group string
}

// errAddress repeats nothing of an address, which may have a password in it.
var errAddress = errors.New("consumer: the address cannot be used: it must be like redis://HOST:6379/0 or nats://HOST:4222/dibs?stream=DIBS")

// placeOf reads an address, as --events of dibs has it.
func placeOf(address, stream, group string) (*place, error) {
	if group == "" {
		return nil, errors.New("consumer: the group is required")
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, errAddress
	}
	k := kinds[u.Scheme]
	if k == nil {
		return nil, errAddress
	}
	q := u.Query()
	at := &place{kind: k, url: u, stream: cmp.Or(stream, q.Get("stream"), k.stream), group: group}
	// Options for the publisher alone.
	for _, option := range []string{"stream", "maxlen", "replicas"} {
		q.Del(option)
	}
	u.RawQuery = q.Encode()
	return at, nil
}

// tidied is an error without the password, or the token, of an address.
func (at *place) tidied(err error) error {
	if err == nil || at.url.User == nil {
		return err
	}
	secret, ok := at.url.User.Password()
	if !ok {
		secret = at.url.User.Username()
	}
	text := err.Error()
	for _, s := range []string{at.url.User.String(), secret, url.QueryEscape(secret)} {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
