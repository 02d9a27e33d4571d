package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/logins"
)

// DefaultStream is where events go in Redis when the address does not say.
const DefaultStream = "dibs:events"

var redisForm = &form{
	example: "redis://USER:PASSWORD@HOST:6379/0?stream=dibs:events&maxlen=1000000",
	options: []string{"stream", "maxlen", "db", "skip_verify", "client_name", "dial_timeout"},
	check: func(u *url.URL) error {
		if _, err := whole(u, "maxlen"); err != nil {
			return err
		}
		if database := strings.Trim(u.Path, "/"); database != "" {
			if _, err := strconv.ParseUint(database, 10, 16); err != nil {
				return errors.New("must end with the number of a database, if with anything, such as redis://HOST:6379/0")
			}
		}
		_, err := redisOptions(u)
		return err
	},
	open: openRedis,
}

// redisSink adds events to a stream.
// One goroutine uses it. client is nil before the first batch; the library connects
// again by itself.
type redisSink struct {
	at     place
	opt    rueidis.ClientOption
	stream string
	maxLen int64
	client rueidis.Client
}

// redisOptions turns an address into the client's options. Its errors name an option's value, and no password.
func redisOptions(u *url.URL) (rueidis.ClientOption, error) {
	plain, options := *u, u.Query()
	options.Del("stream")
	options.Del("maxlen")
	plain.RawQuery = options.Encode()
	return rueidis.ParseURL(plain.String())
}

func openRedis(at place) (Publisher, error) {
	r := &redisSink{at: at, stream: cmp.Or(at.Query().Get("stream"), DefaultStream)}
	var err error
	if r.maxLen, err = whole(at.URL, "maxlen"); err != nil {
		return nil, err
	}
	if r.opt, err = redisOptions(at.URL); err != nil {
		return nil, err
	}
	r.opt.Dialer.Timeout = cmp.Or(r.opt.Dialer.Timeout, 5*time.Second)
	// Whether a command ran whose answer got lost is for the dispatcher to ask,
	// which publishes again.
	r.opt.DisableRetry, r.opt.DisableCache = true, true
	logins.Redis(&r.opt, at.login)
	return r, nil
}

// Publish implements Publisher. Events are added in order: after one that
// failed, those that follow may be there, and come again after it.
func (r *redisSink) Publish(ctx context.Context, messages []Message) error {
	if r.client == nil {
		c, err := rueidis.NewClient(r.opt)
		if err != nil {
			return tidied(err, r.at.now())
		}
		r.client = c
	}
	commands := make(rueidis.Commands, len(messages))
	for i := range messages {
		m := &messages[i]
		args := []string{}
		if r.maxLen > 0 {
			args = append(args, "MAXLEN", "~", strconv.FormatInt(r.maxLen, 10))
		}
		commands[i] = r.client.B().Arbitrary("XADD").Keys(r.stream).Args(args...).
			Args("*", "id", m.ID, "type", m.Type, "subject", m.Subject, "content-type", contentType, "event", rueidis.BinaryString(m.Body)).Build()
	}
	for _, answer := range r.client.DoMulti(ctx, commands...) {
		if err := answer.Error(); err != nil {
			return tidied(fmt.Errorf("XADD: %w", err), r.at.now())
		}
	}
	return nil
}

// Close implements Publisher.
func (r *redisSink) Close() error {
	if r.client != nil {
		r.client.Close()
		r.client = nil
	}
	return nil
}
